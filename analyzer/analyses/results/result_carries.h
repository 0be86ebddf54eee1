/* SPDX-License-Identifier: MIT
 *
 * Makes of each struct of a table of results a function that writes or reads it (base/carrier.h):
 * define RESULT_TABLE as its path, then include this. For tables whose structs have one count of
 * NUMBERS each. What is C_ONLY, the caller carries.
 */
#ifndef TSCOPE_RESULT_CARRIES_H
#define TSCOPE_RESULT_CARRIES_H

#include "analyses/results/words.h"
#include "base/carrier.h"

/* One of `words`, which NULL ends. */
static inline u32 carry_word(struct carrier *c, u32 value, const char *const *words) {
  carry_u32(c, &value);
  for (u32 i = 1; c->reads && i <= value && !c->bad; i++)
    c->bad |= !words[i];
  return c->bad ? 0 : value;
}

/* All arrays of a struct are equally long. */
static inline void carry_numbers(struct carrier *c, double **numbers, u32 *n, bool *counted) {
  u32 count = carry_count(c, *n, sizeof(double));
  c->bad |= *counted && count != *n;
  *n = c->bad ? 0 : count;
  *counted = true;
  CARRY_ARRAY(c, *numbers, *n);
  for (u32 i = 0; i < *n; i++)
    carry_double(c, &(*numbers)[i]);
}

#endif

#define STRUCT(name)                                                                               \
  static void carry_##name(struct carrier *c, struct name *value) {                                \
    bool counted = false;                                                                          \
    (void)counted;
#define END_STRUCT }
#define NUMBER(member, unit, meaning) carry_double(c, &value->member);
#define NUMBER_AS(member, key, unit, meaning) carry_double(c, &value->member);
#define TEXT(member, meaning) carry_text(c, &value->member);
#define WORD_OF(member, words, meaning)                                                            \
  value->member = (enum words)carry_word(c, value->member, words##_words);
#define STRINGS(member, meaning)                                                                   \
  value->n_##member = carry_count(c, value->n_##member, 1);                                        \
  CARRY_ARRAY(c, value->member, value->n_##member);                                                \
  for (u32 i = 0; i < value->n_##member; i++)                                                      \
    carry_text(c, &value->member[i]);
#define NUMBERS(member, count, unit, meaning)                                                      \
  carry_numbers(c, &value->member, &value->count, &counted);
#define NUMBERS_AS(member, key, count, unit, meaning)                                              \
  carry_numbers(c, &value->member, &value->count, &counted);
#define LIST(member, row, meaning)                                                                 \
  value->n_##member = carry_count(c, value->n_##member, 1);                                        \
  CARRY_ARRAY(c, value->member, value->n_##member);                                                \
  for (u32 i = 0; i < value->n_##member; i++)                                                      \
    carry_##row(c, &value->member[i]);
#define VIEW_LIST(member, key, row, view, meaning)
#define PART(member, type, meaning) carry_##type(c, &value->member);
#define GROUP(key, meaning)
#define END_GROUP
#define MADE(key, function, type, meaning)
#define C_ONLY(...)

#include RESULT_TABLE

#include "analyses/results/result_lines_end.h"
#undef RESULT_TABLE
