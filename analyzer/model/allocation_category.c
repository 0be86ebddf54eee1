/* SPDX-License-Identifier: MIT */
#include "model/allocation_category.h"

#include <stddef.h>

const char *allocation_category_name(enum allocation_category category) {
  static const char *const words[] = {NULL,
#define C(NAME, word) word,
                                      TSCOPE_ALLOCATION_CATEGORIES(C)
#undef C
  };
  return category < ALLOCATION_CATEGORIES ? words[category] : NULL;
}
