/* SPDX-License-Identifier: MIT */
#include "symbols/dwfl_places.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols/function_name.h"

const char *dwfl_build_id(struct arena *arena, Dwfl_Module *module) {
  const unsigned char *bits = NULL;
  GElf_Addr at;
  char hex[2 * 32 + 1];
  int n = dwfl_module_build_id(module, &bits, &at);
  for (int i = 0; i < n && i < 32; i++)
    snprintf(hex + 2 * i, 3, "%02x", bits[i]);
  return n > 0 ? arena_text(arena, hex) : NULL;
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

void dwfl_name_place(struct arena *arena, Dwfl_Module *module, u64 address,
                     struct native_place *place) {
  GElf_Sym symbol;
  GElf_Off offset = 0;
  int line = 0;
  const char *name = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
  /* Of a stripped file the symbol before may be one far away. */
  if (name && offset < symbol.st_size)
    place->symbol = place->function = function_name(arena, name);
  Dwfl_Line *source = dwfl_module_getsrc(module, address);
  const char *file = source ? dwfl_lineinfo(source, NULL, &line, NULL, NULL, NULL) : NULL;
  if (file && line > 0) {
    const char *function = innermost_function(module, address, arena);
    place->file = arena_text(arena, file);
    place->line = (u32)line;
    place->function = function ? function : place->function;
  }
}
