/* SPDX-License-Identifier: MIT
 *
 * Writes protobuf messages [protobuf.dev, Encoding] into a buffer that grows. A field is its number
 * and how its value is written; a message within another has its length before it, which is known
 * when it is closed.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/varint.h"
#include "format/tscope_format.h"

struct protobuf {
  u8 *bytes;
  size_t n, room;
};

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_LENGTH = 2 };

static inline void protobuf_reserve(struct protobuf *p, size_t bytes) {
  if (__builtin_expect(p->room - p->n >= bytes, 1))
    return;
  size_t room = (p->room + bytes) * 2;
  p->bytes = memory_resized(p->bytes, room, 1);
  p->room = room;
}

/* The room is there. */
static inline void protobuf_put_varint(struct protobuf *p, u64 value) {
  p->n += varint_write(p->bytes + p->n, value);
}

static inline void protobuf_uint(struct protobuf *p, u32 field, u64 value) {
  protobuf_reserve(p, 2 * VARINT_MOST);
  protobuf_put_varint(p, field << 3 | PROTOBUF_VARINT);
  protobuf_put_varint(p, value);
}

/* int32 and int64 fields: negative numbers as 64 bits of two's complement. */
static inline void protobuf_int(struct protobuf *p, u32 field, i64 value) {
  protobuf_uint(p, field, (u64)value);
}

static inline void protobuf_fixed64(struct protobuf *p, u32 field, u64 value) {
  protobuf_reserve(p, 2 * VARINT_MOST);
  protobuf_put_varint(p, field << 3 | PROTOBUF_FIXED64);
  for (int i = 0; i < 8; i++)
    p->bytes[p->n++] = (u8)(value >> (8 * i));
}

static inline void protobuf_double(struct protobuf *p, u32 field, double value) {
  u64 bits;
  memcpy(&bits, &value, sizeof(bits));
  protobuf_fixed64(p, field, bits);
}

static inline void protobuf_bytes(struct protobuf *p, u32 field, const void *bytes, size_t n) {
  protobuf_reserve(p, 2 * VARINT_MOST + n);
  protobuf_put_varint(p, field << 3 | PROTOBUF_LENGTH);
  protobuf_put_varint(p, n);
  memcpy(p->bytes + p->n, bytes, n);
  p->n += n;
}

/* A message within: what is written until it is closed. One byte is kept for its length. */
static inline size_t protobuf_open(struct protobuf *p, u32 field) {
  protobuf_reserve(p, 2 * VARINT_MOST);
  protobuf_put_varint(p, field << 3 | PROTOBUF_LENGTH);
  return ++p->n;
}

static inline void protobuf_close(struct protobuf *p, size_t begin) {
  size_t length = p->n - begin, more = 0;
  for (size_t rest = length; rest >= 0x80; rest >>= 7)
    more++;
  if (more) {
    protobuf_reserve(p, more);
    memmove(p->bytes + begin + more, p->bytes + begin, length);
  }
  p->n = begin - 1;
  protobuf_put_varint(p, length);
  p->n += length;
}
