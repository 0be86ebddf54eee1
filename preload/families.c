/* SPDX-License-Identifier: MIT */
#include "record/families.h"

/* Weak, so that a program may link the core with only some of the families. */
#define X(SLOT, name)                                                                              \
  extern const struct tscope_family tscope_##name##_family                                         \
      __attribute__((weak, visibility("hidden")));
TSCOPE_FAMILIES(X)
#undef X

#define X(SLOT, name) &tscope_##name##_family,
const struct tscope_family *const tscope_families[] = {TSCOPE_FAMILIES(X)};

u32 tscope_stall_now;
