/* SPDX-License-Identifier: MIT */
#include "base/carrier.h"

#include <string.h>

#include "base/hash.h"
#include "base/varint.h"

#define PART_LENGTH 4u /* bytes */

struct carrier carrier_to_write(struct arena *arena) {
  return (struct carrier){.arena = arena};
}

struct carrier carrier_to_read(const void *bytes, size_t n, struct arena *arena) {
  return (struct carrier){.reads = true, .at = bytes, .end = (const u8 *)bytes + n, .arena = arena};
}

void carrier_free(struct carrier *c) {
  FREE_EACH(c, written.at, texts.at, texts.index.slots);
  *c = (struct carrier){0};
}

static void write_bytes(struct carrier *c, const void *bytes, size_t n) {
  const u8 *from = bytes;
  FOR_EACH(from, n, one)
    VECTOR_PUSH(&c->written, *one);
}

static bool read_bytes(struct carrier *c, void *bytes, size_t n) {
  c->bad |= (size_t)(c->end - c->at) < n;
  if (c->bad) {
    memset(bytes, 0, n);
    return false;
  }
  memcpy(bytes, c->at, n);
  c->at += n;
  return true;
}

static void write_varint(struct carrier *c, u64 value) {
  u8 bytes[VARINT_MOST];
  write_bytes(c, bytes, varint_write(bytes, value));
}

/* Small numbers of either sign get small codes. */
static u64 zigzag(i64 value) {
  return (u64)value << 1 ^ (u64)(value >> 63);
}

static i64 unzigzag(u64 code) {
  return (i64)(code >> 1) ^ -(i64)(code & 1);
}

void carry_u64(struct carrier *c, u64 *value) {
  if (c->reads)
    *value = varint_read(&c->at, c->end, &c->bad);
  else
    write_varint(c, *value);
}

void carry_difference(struct carrier *c, i64 *value) {
  u64 code = zigzag(*value);
  carry_u64(c, &code);
  if (c->reads)
    *value = unzigzag(code);
}

static void check(struct carrier *c, bool good, i64 *value) {
  if (c->reads && !good) {
    c->bad = true;
    *value = 0;
  }
}

static void check_time(struct carrier *c, i64 *value) {
  bool good = (*value <= CARRIED_MOST && *value >= -CARRIED_MOST) || *value == INT64_MIN ||
              *value == INT64_MAX;
  check(c, good, value);
}

void carry_i64(struct carrier *c, i64 *value) {
  carry_difference(c, value);
  check_time(c, value);
}

#define CARRY_NARROWER(name, type, wide, wider)                                                    \
  void carry_##name(struct carrier *c, type *value) {                                              \
    wider whole = c->reads ? 0 : (wider)*value;                                                    \
    carry_##wide(c, &whole);                                                                       \
    c->bad |= c->reads && (wider)(type)whole != whole;                                             \
    if (c->reads)                                                                                  \
      *value = (type)whole;                                                                        \
  }
CARRY_NARROWER(u32, u32, u64, u64)
CARRY_NARROWER(u8, u8, u64, u64)
CARRY_NARROWER(i32, i32, i64, i64)
CARRY_NARROWER(char, char, i64, i64)

/* A bool that holds neither 0 nor 1 must not come to be. */
void carry_bool(struct carrier *c, bool *value) {
  u8 byte = c->reads ? 0 : *value;
  carry_u8(c, &byte);
  c->bad |= byte > 1;
  if (c->reads)
    *value = byte == 1;
}

void carry_double(struct carrier *c, double *value) {
  if (c->reads)
    read_bytes(c, value, sizeof(*value));
  else
    write_bytes(c, value, sizeof(*value));
}

/* Texts: 0 is NULL; the number after the last is a new one, which follows. */

/* The text's place among those known, + 1; one that is not known yet is added, as a copy: the
 * caller's may be gone by the next. */
static void write_text(struct carrier *c, const char *text) {
  if (!text) {
    write_varint(c, 0);
    return;
  }
  u64 hash = table_hash_text(0, text);
  u32 known = HASHED_INDEX(&c->texts, hash, one, strcmp(*one, text) == 0);
  if (known != INDEX_NONE) {
    write_varint(c, known + 1);
    return;
  }
  HASHED_ADD(&c->texts, hash, (const char *)arena_text(c->arena, text));
  write_varint(c, c->texts.n);
  size_t length = strlen(text);
  write_varint(c, length);
  write_bytes(c, text, length);
}

static const char *read_text(struct carrier *c) {
  u64 number = varint_read(&c->at, c->end, &c->bad);
  if (number == 0 || c->bad)
    return NULL;
  if (number <= c->texts.n)
    return c->texts.at[number - 1];
  u64 length = varint_read(&c->at, c->end, &c->bad);
  c->bad |= number != c->texts.n + 1 || length > (u64)(c->end - c->at);
  if (c->bad)
    return NULL;
  const char *text = arena_copy(c->arena, (const char *)c->at, length);
  c->at += length;
  VECTOR_PUSH(&c->texts, text);
  return text;
}

void carry_text(struct carrier *c, const char **text) {
  if (c->reads)
    *text = read_text(c);
  else
    write_text(c, *text);
}

u32 carry_count(struct carrier *c, u32 n, u32 least) {
  carry_u32(c, &n);
  c->bad |= c->reads && size_product(n, MAX(least, 1)) > (size_t)(c->end - c->at);
  return c->bad ? 0 : n;
}

static i64 integer_at(const u8 *at, u16 bytes) {
  i64 value = 0;
  memcpy(&value, at, bytes);
  u32 unused = 64 - 8u * bytes;
  return (i64)((u64)value << unused) >> unused;
}

static void set_integer(u8 *at, u16 bytes, i64 value) {
  memcpy(at, &value, bytes);
}

/* Differences wrap around, as the members do. */
static void carry_integers(struct carrier *c, u8 *elements, u32 n, size_t element_bytes,
                           const struct column *column) {
  i64 before = 0;
  u32 unused = 64 - 8u * column->bytes;
  for (u32 i = 0; i < n && !c->bad; i++) {
    u8 *element = elements + i * element_bytes;
    if (column->coding == COLUMN_AFTER)
      before = integer_at(element + column->after, sizeof(i64));
    u64 difference =
        c->reads ? 0 : (u64)integer_at(element + column->offset, column->bytes) - (u64)before;
    i64 narrow = (i64)(difference << unused) >> unused;
    carry_difference(c, &narrow);
    i64 value = (i64)((u64)before + (u64)narrow);
    if (column->coding == COLUMN_FLAGS)
      check(c, value == 0 || value == 1, &value);
    else if (column->coding != COLUMN_STEPS)
      check_time(c, &value);
    if (c->reads)
      set_integer(element + column->offset, column->bytes, value);
    before = (i64)((u64)value << unused) >> unused;
  }
}

static i64 *instant_at(u8 *element, u16 offset) {
  return (i64 *)(void *)(element + offset);
}

static void carry_spans(struct carrier *c, u8 *elements, u32 n, size_t element_bytes,
                        const struct column *column) {
  i64 free_from = 0; /* the end of the element before; its begin, where its end is not known */
  for (u32 i = 0; i < n; i++) {
    i64 *start = instant_at(elements + i * element_bytes, column->offset);
    i64 *end = instant_at(elements + i * element_bytes, column->after);
    i64 length = c->reads ? 0 : (i64)((u64)*end - (u64)*start);
    carry_difference(c, &length);
    if (c->reads)
      *end = length; /* until its begin is known */
  }
  for (u32 i = 0; i < n; i++) {
    i64 *start = instant_at(elements + i * element_bytes, column->offset);
    i64 *end = instant_at(elements + i * element_bytes, column->after);
    i64 gap = c->reads ? 0 : (i64)((u64)*start - (u64)free_from);
    carry_difference(c, &gap);
    if (c->reads) {
      *start = (i64)((u64)free_from + (u64)gap);
      *end = (i64)((u64)*start + (u64)*end);
      check_time(c, start);
      check_time(c, end);
    }
    free_from = *end == INT64_MIN || *end == INT64_MAX ? *start : *end;
  }
}

void carry_columns(struct carrier *c, void *elements, u32 n, size_t element_bytes,
                   const struct column *columns, u32 n_columns) {
  for (u32 k = 0; n && k < n_columns; k++) { /* an empty list may be NULL */
    const struct column *column = &columns[k];
    u8 *at = (u8 *)elements + column->offset;
    if (column->coding == COLUMN_SPANS)
      carry_spans(c, elements, n, element_bytes, column);
    else if (column->coding <= COLUMN_AFTER)
      carry_integers(c, elements, n, element_bytes, column);
    for (u32 i = 0; i < n && !c->bad && column->coding >= COLUMN_TEXT; i++, at += element_bytes)
      if (column->coding == COLUMN_TEXT)
        carry_text(c, (const char **)(void *)at);
      else if (c->reads)
        read_bytes(c, at, column->bytes);
      else
        write_bytes(c, at, column->bytes);
  }
}

static void forget_texts(struct carrier *c) {
  c->texts.n = 0;
  hash_index_clear(&c->texts.index);
}

struct carried_part carrier_begin_part(struct carrier *c) {
  u32 length = 0;
  forget_texts(c);
  if (!c->reads) {
    write_bytes(c, &length, PART_LENGTH);
    return (struct carried_part){.begin = c->written.n};
  }
  read_bytes(c, &length, PART_LENGTH);
  c->bad |= length > (size_t)(c->end - c->at);
  length = c->bad ? 0 : length;
  struct carried_part part = {.after = c->at + length, .end = c->end, .empty = !length};
  c->end = part.after;
  return part;
}

void carrier_end_part(struct carrier *c, struct carried_part part) {
  u32 length = (u32)(c->written.n - part.begin);
  if (!c->reads) {
    memcpy(c->written.at + part.begin - PART_LENGTH, &length, PART_LENGTH);
    return;
  }
  c->bad |= c->at != part.after;
  c->at = part.after;
  c->end = part.end;
}

struct arena *carrier_read_into(struct carrier *c, struct arena *arena) {
  struct arena *before = c->arena;
  forget_texts(c);
  if (c->reads)
    c->arena = arena;
  return before;
}

void carrier_append(struct carrier *c, const struct carrier *parts) {
  write_bytes(c, parts->written.at, parts->written.n);
}
