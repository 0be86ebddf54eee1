/* SPDX-License-Identifier: MIT */
#include "analyses/results/words.h"

#include <stddef.h>

#define WORDS(name) const char *const name##_words[] = {
#define WORD(NAME, word) word,
#define END_WORDS                                                                                  \
  NULL                                                                                             \
  }                                                                                                \
  ;
#include "analyses/results/words.def"
