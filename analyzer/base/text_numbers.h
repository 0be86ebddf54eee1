/* SPDX-License-Identifier: MIT
 *
 * Texts, each once, by their numbers: 0, 1 and so on in the order in which they came.
 */
#pragma once

#include "base/hash_index.h"

/* {0} is empty. */
struct text_numbers {
  HASHED(const char *) texts; /* by number */
  struct arena arena;
};

/* A text that is not there is added, as a copy: then its number is what texts.n was before. */
u32 text_number(struct text_numbers *numbers, const char *text);

void text_numbers_free(struct text_numbers *numbers);
