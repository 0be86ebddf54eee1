/* SPDX-License-Identifier: MIT
 *
 * What has to be known of one CPython interpreter to read its frames from outside its own code.
 */
#pragma once

#include "inspect/python_layouts.def"
#include "inspect/python_memory.h"

/* How a code object says which instruction is of which line. */
enum python_lines { PYTHON_LNOTAB = 1, PYTHON_LINE_PAIRS, PYTHON_LOCATIONS };

struct python_layout {
  u32 minor; /* 3.minor; 0: not known */
  enum python_lines lines;
#define X(member, what) u32 member;
  PYTHON_OFFSETS(X)
#undef X
  u32 text_kind_bit; /* in PyASCIIObject.state; compact and ascii follow the three bits of kind */
};

/* An interpreter. The addresses are those of its own type objects, by which objects are known. */
struct python {
  struct python_layout layout;
  u64 code_type, text_type;
};

/* Offsets that are the same in every version read here (64 bits, with a GIL). */
enum {
  PYTHON_OBJECT_TYPE = 8,
  PYTHON_VAR_SIZE = 16,
  PYTHON_TEXT_LENGTH = 16,
  PYTHON_TEXT_STATE = 32,
  PYTHON_BYTES_DATA = 32,
  PYTHON_TYPE_MEMBERS = 240,
  PYTHON_GIL_HOLDER = 8, /* struct _gil_runtime_state, from 3.12 on: of the last, and */
  PYTHON_GIL_LOCKED = 16,
};

/* The layout of CPython `version` ("3.11.7 (main, ..."); `runtime` is the address of _PyRuntime,
 * read from 3.13 on. NULL, or why it is not known. */
const char *python_layout_find(struct python_layout *layout, const char *version, python_read *read,
                               const void *context, u64 runtime);
