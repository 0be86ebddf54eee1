/* SPDX-License-Identifier: MIT
 *
 * Hashes. Of equal bytes they are equal, in every run and on every machine; those for tables only
 * in one process.
 */
#pragma once

#include <string.h>

#include "format/tscope_format.h"

#define HASH_SEED 0xcbf29ce484222325ull

/* FNV-1a of a text and its end, so that several texts in a row hash as several; NULL is "". */
static inline u64 hash_text(u64 seed, const char *text) {
  for (; text && *text; text++)
    seed = (seed ^ (u8)*text) * 0x100000001b3ull;
  return (seed ^ 0xff) * 0x100000001b3ull;
}

/* Takes one more number into a small hash. */
static inline u32 hash_number(u32 hash, u64 value) {
  u64 x = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return (u32)(x ^ (x >> 32));
}

/* Where speed counts: eight bytes at a time. */
static inline u64 hash_bytes(u64 seed, const void *bytes, size_t n) {
  const char *at = bytes;
  u64 hash = seed ^ n * 0x9e3779b97f4a7c15ull, word;
  for (; n >= sizeof(word); at += sizeof(word), n -= sizeof(word)) {
    memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * 0x9fb21c651e98df25ull;
    hash ^= hash >> 32;
  }
  word = 0;
  if (n > 0) /* memory of no bytes may be NULL, which memcpy() may not be given */
    memcpy(&word, at, n);
  hash = (hash ^ word) * 0x9fb21c651e98df25ull;
  return hash ^ hash >> 32;
}

/* For tables in memory. Chosen anew in each process: nobody can write a file whose names all have
 * one hash, or one slot, which would make reading it take time as the square of its size. */
extern u64 table_hash_keys[2];

static inline u64 table_hash_number(u64 number) {
  unsigned __int128 product = (unsigned __int128)(number ^ table_hash_keys[0]) * table_hash_keys[1];
  return (u64)product ^ (u64)(product >> 64);
}

/* `before`: the hash of what comes before these bytes, or a number. */
static inline u64 table_hash(u64 before, const void *bytes, size_t n) {
  const char *at = bytes;
  u64 hash = table_hash_number(before + n), word;
  for (; n >= sizeof(word); at += sizeof(word), n -= sizeof(word)) {
    memcpy(&word, at, sizeof(word));
    hash = table_hash_number(hash ^ word);
  }
  word = 0;
  if (n > 0) /* memory of no bytes may be NULL, which memcpy() may not be given */
    memcpy(&word, at, n);
  return table_hash_number(hash ^ word);
}

/* NULL is "". */
static inline u64 table_hash_text(u64 before, const char *text) {
  return table_hash(before, text, text ? strlen(text) : 0);
}
