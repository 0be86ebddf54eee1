/* SPDX-License-Identifier: MIT
 *
 * Makes structs of a table of results: define RESULT_TABLE as its path, then include this. How
 * lines are written is described in results.def. For each struct there is unknown_NAME, of which no
 * number is known, and nothing else is there.
 */
#include <math.h>

#define STRUCT(name) struct name {
#define END_STRUCT                                                                                 \
  }                                                                                                \
  ;
#define NUMBER(member, unit, meaning) double member;
#define NUMBER_AS(member, key, unit, meaning) double member;
#define VALUE(member, unit, meaning) double member;
#define RANK(member, meaning) u32 member;
#define TEXT(member, meaning) const char *member;
#define TEXT_AS(member, key, meaning) const char *member;
#define WORD_OF(member, words, meaning) enum words member;
#define WORD_OF_AS(member, key, words, meaning) enum words member;
#define STRINGS(member, meaning)                                                                   \
  const char **member;                                                                             \
  u32 n_##member;
#define RANKS(member, meaning)                                                                     \
  u32 *member;                                                                                     \
  u32 n_##member;
#define NUMBERS(member, count, unit, meaning) double *member;
#define NUMBERS_AS(member, key, count, unit, meaning) double *member;
#define ELEMENT(member, index, key, unit, meaning)
#define LIST(member, row, meaning)                                                                 \
  struct row *member;                                                                              \
  u32 n_##member;
#define LIST_AS(member, key, row, meaning) LIST(member, row, meaning)
#define VIEW_LIST(member, key, row, view, meaning)
#define MAP(member, row, name, meaning) LIST(member, row, meaning)
#define MAP_AS(member, key, row, name, meaning) LIST(member, row, meaning)
#define PART(member, type, meaning) struct type member;
#define PART_AS(member, key, type, meaning) struct type member;
#define PART_AT(member, type, none, meaning) const struct type *member;
#define FIELDS_OF(member, type) struct type member;
#define GROUP(key, meaning)
#define END_GROUP
#define MADE(key, function, type, meaning)
#define C_ONLY(...) __VA_ARGS__;

#include RESULT_TABLE

#include "analyses/results/result_lines_end.h"

#define STRUCT(name) static const struct name unknown_##name __attribute__((unused)) = {
#define END_STRUCT                                                                                 \
  }                                                                                                \
  ;
#define NUMBER(member, ...) .member = (double)NAN,
#define NUMBER_AS(member, ...) .member = (double)NAN,
#define VALUE(member, ...) .member = (double)NAN,
#define RANK(...)
#define TEXT(...)
#define TEXT_AS(...)
#define WORD_OF(...)
#define WORD_OF_AS(...)
#define STRINGS(...)
#define RANKS(...)
#define NUMBERS(...)
#define NUMBERS_AS(...)
#define ELEMENT(...)
#define LIST(...)
#define LIST_AS(...)
#define VIEW_LIST(...)
#define MAP(...)
#define MAP_AS(...)
#define PART(...)
#define PART_AS(...)
#define PART_AT(...)
#define FIELDS_OF(...)
#define GROUP(...)
#define MADE(...)
#define C_ONLY(...)
#define END_GROUP

#include RESULT_TABLE

#include "analyses/results/result_lines_end.h"
#undef RESULT_TABLE
