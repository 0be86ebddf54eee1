/* SPDX-License-Identifier: MIT
 *
 * What places in C and C++ code are called, from the files that a trace names. Only where the file
 * is still there and is the same build: another one would give wrong names.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "format/tscope_format.h"

/* Texts live in the arena; NULL where not known. */
struct native_place {
  const char *function; /* as function_name() writes it */
  const char *symbol;   /* likewise: the function into which the compiler may have put it */
  const char *file;     /* if debug information has it */
  u32 line;             /* likewise, 0 */
};

/* `address` as the file was linked. False when the file is not there, has no build id, or has
 * another one. From any thread. */
typedef bool native_place_finder(struct arena *arena, const char *library, const char *build_id,
                                 u64 address, struct native_place *place);

/* NULL: this program knows no names. */
extern native_place_finder *native_place_find;

/* Makes this program know them, where it was built with elfutils. */
void native_places_ready(void);
