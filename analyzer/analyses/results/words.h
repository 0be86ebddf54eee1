/* SPDX-License-Identifier: MIT
 *
 * The enums of words.def, and of each its words: oom_risk_words[OOM_LOW] is "low". NULL ends
 * them, and stands first where the first value means "not known".
 */
#pragma once

#define WORDS(name) enum name {
#define WORD(NAME, word) NAME,
#define END_WORDS                                                                                  \
  }                                                                                                \
  ;
#include "analyses/results/words.def"
#undef WORDS
#undef WORD
#undef END_WORDS

#define WORDS(name) extern const char *const name##_words[];
#define WORD(NAME, word)
#define END_WORDS
#include "analyses/results/words.def"
#undef WORDS
#undef WORD
#undef END_WORDS
