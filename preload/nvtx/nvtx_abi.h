/* SPDX-License-Identifier: MIT
 *
 * The interface between a library that was built with NVTX 3 (or links NVTX 2) and a tool: the
 * binary interface of nvtx3/nvToolsExt.h and nvtx3/nvtxDetail/nvtxTypes.h, which has not changed
 * since version 2. tests/unit/inside/inside_nvtx.c compares it with the headers where they are
 * installed.
 */
#pragma once

#include <stddef.h>
#include <wchar.h>

#include "format/tscope_format.h"

enum { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_v2. A newer one is longer. */
struct nvtx_attributes {
  u16 version;
  u16 size;
  u32 category;
  i32 color_type;
  u32 color;
  i32 payload_type;
  i32 reserved;
  u64 payload;
  i32 message_type;
  union {
    const char *ascii;
    const wchar_t *unicode;
    const void *registered;
  } message;
};

/* What a push returns without a tool. With tscope it always returns this too, so that a program
 * gets the same results. */
#define NVTX_UNTRACKED (-2)

typedef void (*nvtx_function)(void);

enum { NVTX_TABLE_CALLBACKS = 1 };
enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

struct nvtx_callbacks_table {
  size_t struct_size;
  int (*get_module)(enum nvtx_module module, nvtx_function ***functions, unsigned *size);
};

/* Places in a module's table, which holds pointers to the library's function pointers. */
enum nvtx_core {
  NVTX_MARK_EX = 1,
  NVTX_MARK_A = 2,
  NVTX_MARK_W = 3,
  NVTX_RANGE_START_EX = 4,
  NVTX_RANGE_START_A = 5,
  NVTX_RANGE_START_W = 6,
  NVTX_RANGE_END = 7,
  NVTX_RANGE_PUSH_EX = 8,
  NVTX_RANGE_PUSH_A = 9,
  NVTX_RANGE_PUSH_W = 10,
  NVTX_RANGE_POP = 11
};
enum nvtx_core2 {
  NVTX_DOMAIN_MARK_EX = 1,
  NVTX_DOMAIN_RANGE_START_EX = 2,
  NVTX_DOMAIN_RANGE_END = 3,
  NVTX_DOMAIN_RANGE_PUSH_EX = 4,
  NVTX_DOMAIN_RANGE_POP = 5,
  NVTX_DOMAIN_REGISTER_STRING_A = 10,
  NVTX_DOMAIN_REGISTER_STRING_W = 11,
  NVTX_DOMAIN_CREATE_A = 12,
  NVTX_DOMAIN_CREATE_W = 13
};
