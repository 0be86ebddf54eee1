/* SPDX-License-Identifier: MIT */
#include "symbols/native_places.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "symbols/dwfl_places.h"

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

static void open_file(struct symbol_file *file) {
  file->dwfl = dwfl_begin(&callbacks);
  if (!file->dwfl)
    return;
  dwfl_report_begin(file->dwfl);
  Dwfl_Module *module = dwfl_report_elf(file->dwfl, file->library, file->library, -1, 0, true);
  dwfl_report_end(file->dwfl, NULL, NULL);
  SCOPED_ARENA struct arena scratch = {0};
  if (module && same_text(dwfl_build_id(&scratch, module), file->build_id))
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

static bool find_place(struct arena *arena, const char *library, const char *build_id, u64 address,
                       struct native_place *place) {
  pthread_mutex_lock(&files.lock);
  struct symbol_file *file = file_of(library, build_id);
  bool found = file && file->module;
  if (found)
    dwfl_name_place(arena, file->module, address, place);
  pthread_mutex_unlock(&files.lock);
  return found;
}

void native_places_ready(void) {
  unsetenv("DEBUGINFOD_URLS"); /* elfutils would download what is not on this host */
  native_place_find = find_place;
}
