/* SPDX-License-Identifier: MIT
 *
 * Values as bytes, in both directions: one function says which members a value has, and either
 * writes them or reads them. So what is written is what is read.
 *
 *   static void carry_window(struct carrier *c, struct window *window) {
 *     CARRY(c, &window->begin);
 *     CARRY(c, &window->end);
 *   }
 *
 * Integers are written in as few bytes as they need, texts once. What is read may be damaged, or
 * made to do harm: then members are 0 and carrier_is_bad() says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/hash_index.h"
#include "base/vector.h"

struct carrier {
  bool reads, bad;
  VECTOR(u8) written;
  const u8 *at, *end;         /* reading: what is left */
  struct arena *arena;        /* for what is read, or for texts that were written */
  HASHED(const char *) texts; /* by hash only when writing */
};

struct carrier carrier_to_write(struct arena *arena);
struct carrier carrier_to_read(const void *bytes, size_t n, struct arena *arena);
void carrier_free(struct carrier *c);

/* Whether what was read was not written by this. */
static inline bool carrier_is_bad(const struct carrier *c) {
  return c->bad;
}

/* An i64 is an instant or a time in ns: beyond CARRIED_MOST it is bad, but for NS_UNKNOWN and
 * INT64_MAX, so that differences and sums of two stay within an i64. */
#define CARRIED_MOST (1ll << 61)
void carry_u64(struct carrier *c, u64 *value);
void carry_i64(struct carrier *c, i64 *value);
void carry_difference(struct carrier *c, i64 *value); /* of any size: it may wrap around */
void carry_u32(struct carrier *c, u32 *value);
void carry_i32(struct carrier *c, i32 *value);
void carry_u8(struct carrier *c, u8 *value);
void carry_bool(struct carrier *c, bool *value);
void carry_char(struct carrier *c, char *value);
void carry_double(struct carrier *c, double *value);
void carry_text(struct carrier *c, const char **text); /* NULL is not "" */

#define CARRY(c, place)                                                                            \
  _Generic((place),                                                                                \
      u64 *: carry_u64,                                                                            \
      i64 *: carry_i64,                                                                            \
      u32 *: carry_u32,                                                                            \
      i32 *: carry_i32,                                                                            \
      u8 *: carry_u8,                                                                              \
      bool *: carry_bool,                                                                          \
      char *: carry_char,                                                                          \
      double *: carry_double,                                                                      \
      const char **: carry_text)(c, place)

/* These members of a struct, in this order. */
#define CARRY_EACH(c, of, ...)                                                                     \
  do {                                                                                             \
    struct carrier *carrier_ = (c);                                                                \
    __typeof__(of) of_ = (of);                                                                     \
    EACH(CARRY_MEMBER, __VA_ARGS__)                                                                \
  } while (0)
#define CARRY_MEMBER(member) CARRY(carrier_, &of_->member);

/* How many elements follow, each of at least `least` bytes: 0 if there are not that many bytes. */
u32 carry_count(struct carrier *c, u32 n, u32 least);

/* Room for elements that are read; what is written stays where it is. */
#define CARRY_ARRAY(c, at, n)                                                                      \
  ((c)->reads ? (void)((at) = arena_array((c)->arena, n, sizeof(*(at)))) : (void)0)

/* A list: how many there are, and each by a function. `least` as for carry_count(). */
#define CARRY_LIST(c, at, n, least, carry)                                                         \
  do {                                                                                             \
    u32 n_ = carry_count(c, n, least);                                                             \
    if ((c)->reads)                                                                                \
      (n) = n_;                                                                                    \
    CARRY_ARRAY(c, at, n);                                                                         \
    for (u32 i_ = 0; i_ < (n); i_++)                                                               \
      carry(c, &(at)[i_]);                                                                         \
  } while (0)

/* Members of the elements of an array, one member after the other, because those of one kind are
 * alike. */
enum column_coding {
  COLUMN_STEPS,    /* an integer, as the difference from the element before */
  COLUMN_INSTANTS, /* the same of an i64 like those of carry_i64() */
  COLUMN_FLAGS,    /* the same of a bool */
  COLUMN_SPANS,    /* two: when each began and ended. How long each lasted, then how long after the
                      end of the element before it began: of what follows each other in a queue, that
                      varies least */
  COLUMN_AFTER,    /* such an i64, as the difference from another of the same element */
  COLUMN_TEXT,
  COLUMN_BYTES /* as they are */
};
struct column {
  const char *name;
  u16 offset, bytes, after;
  u8 coding;
};
#define COLUMN_CODED(type, member, how)                                                            \
  .name = #member, .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member),         \
  .coding = (how)
#define COLUMN(type, member)                                                                       \
  {                                                                                                \
    COLUMN_CODED(type, member,                                                                     \
                 _Generic(((type *)0)->member, i64                                                 \
                          : COLUMN_INSTANTS, bool                                                  \
                          : COLUMN_FLAGS, default                                                  \
                          : COLUMN_STEPS))                                                         \
  }
#define EACH_COLUMN(type, ...) EACH_WITH(ONE_COLUMN, type, __VA_ARGS__)
#define ONE_COLUMN(type, member) COLUMN(type, member),
#define COLUMN_NEAR(type, member, other)                                                           \
  { COLUMN_CODED(type, member, COLUMN_AFTER), .after = offsetof(type, other) }
#define COLUMN_LASTING(type, member, until)                                                        \
  { COLUMN_CODED(type, member, COLUMN_SPANS), .after = offsetof(type, until) }
#define COLUMN_OF_TEXT(type, member)                                                               \
  { COLUMN_CODED(type, member, COLUMN_TEXT) }
#define COLUMN_AS_BYTES(type, member)                                                              \
  { COLUMN_CODED(type, member, COLUMN_BYTES) }
void carry_columns(struct carrier *c, void *elements, u32 n, size_t element_bytes,
                   const struct column *columns, u32 n_columns);

/* A part with its length, so that a reader finds the next one whatever is in it. Texts are written
 * once in each part. Reading, what is left of the carrier is the part, and an empty one has no
 * content. */
#define CARRY_PART(c, content)                                                                     \
  do {                                                                                             \
    struct carried_part part_ = carrier_begin_part(c);                                             \
    if (!part_.empty) {                                                                            \
      content;                                                                                     \
    }                                                                                              \
    carrier_end_part(c, part_);                                                                    \
  } while (0)

struct carried_part {
  size_t begin;          /* writing: of its content */
  const u8 *after, *end; /* reading: where the next part begins, and the carrier ends */
  bool empty;
};

struct carried_part carrier_begin_part(struct carrier *c);
void carrier_end_part(struct carrier *c, struct carried_part part);

/* What is read from here on lives in another arena; returns the one before. Texts are written anew:
 * those before live there. */
struct arena *carrier_read_into(struct carrier *c, struct arena *arena);

/* Adds the parts that another has written. */
void carrier_append(struct carrier *c, const struct carrier *parts);
