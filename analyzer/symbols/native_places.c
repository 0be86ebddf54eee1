/* SPDX-License-Identifier: MIT */
#include "symbols/native_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/function_name.h"

enum { LIBRARIES_MOST = 1024 };

/* A requested file; `module` is NULL where it is not there or not the same. */
struct symbol_file {
  char *library, *build_id;
  Dwfl *dwfl;
  Dwfl_Module *module;
};

static struct {
  pthread_mutex_t lock; /* libdw is for one thread at a time */
  struct symbol_file at[LIBRARIES_MOST];
  u32 n;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *debug_path = NULL; /* elfutils' own: beside the file, and /usr/lib/debug */
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

static bool has_build_id(Dwfl_Module *module, const char *wanted) {
  const unsigned char *bits = NULL;
  GElf_Addr at;
  char hex[2 * 32 + 1] = "";
  int n = dwfl_module_build_id(module, &bits, &at);
  for (int i = 0; i < n && i < 32; i++)
    snprintf(hex + 2 * i, 3, "%02x", bits[i]);
  return n > 0 && strcmp(hex, wanted) == 0;
}

static void open_file(struct symbol_file *file) {
  file->dwfl = dwfl_begin(&callbacks);
  if (!file->dwfl)
    return;
  dwfl_report_begin(file->dwfl);
  Dwfl_Module *module = dwfl_report_elf(file->dwfl, file->library, file->library, -1, 0, true);
  dwfl_report_end(file->dwfl, NULL, NULL);
  if (module && has_build_id(module, file->build_id))
    file->module = module;
}

static struct symbol_file *file_of(const char *library, const char *build_id) {
  struct symbol_file *known =
      FIND(files.at, files.n, one,
           strcmp(one->library, library) == 0 && strcmp(one->build_id, build_id) == 0);
  if (known || files.n == LIBRARIES_MOST)
    return known;
  struct symbol_file *file = &files.at[files.n];
  *file = (struct symbol_file){.library = memory_text(library), .build_id = memory_text(build_id)};
  files.n++;
  open_file(file);
  return file;
}

static const char *name_of(Dwarf_Die *die) {
  Dwarf_Attribute linkage;
  const char *name = NULL;
  if (dwarf_attr_integrate(die, DW_AT_linkage_name, &linkage))
    name = dwarf_formstring(&linkage);
  return name ? name : dwarf_diename(die);
}

/* The function that the line is in: the compiler may have put it into another one, whose symbol the
 * address has. NULL where no debug information has it. */
static const char *innermost_function(Dwfl_Module *module, u64 address, struct arena *arena) {
  Dwarf_Addr bias = 0;
  Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes = NULL;
  int n = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
  const char *name = NULL;
  for (int i = 0; i < n && !name; i++) {
    int tag = dwarf_tag(&scopes[i]);
    if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram)
      name = name_of(&scopes[i]);
  }
  const char *text = name ? function_name(arena, name) : NULL;
  free(scopes);
  return text;
}

static void name_place(struct arena *arena, Dwfl_Module *module, u64 address,
                       struct native_place *place) {
  GElf_Sym symbol;
  GElf_Off offset = 0;
  int line = 0;
  const char *name = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
  /* Of a stripped file the symbol before may be one far away. */
  if (name && offset < symbol.st_size)
    place->function = function_name(arena, name);
  Dwfl_Line *source = dwfl_module_getsrc(module, address);
  const char *file = source ? dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL) : NULL;
  if (file && line > 0) {
    const char *function = innermost_function(module, address, arena);
    place->file = arena_text(arena, file);
    place->line = (u32)line;
    place->function = function ? function : place->function;
  }
}

static bool find_place(struct arena *arena, const char *library, const char *build_id, u64 address,
                       struct native_place *place) {
  pthread_mutex_lock(&files.lock);
  struct symbol_file *file = file_of(library, build_id);
  bool found = file && file->module;
  if (found)
    name_place(arena, file->module, address, place);
  pthread_mutex_unlock(&files.lock);
  return found;
}

void native_places_ready(void) {
  unsetenv("DEBUGINFOD_URLS"); /* elfutils would download what is not on this host */
  native_place_find = find_place;
}
