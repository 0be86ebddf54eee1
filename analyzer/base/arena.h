/* SPDX-License-Identifier: MIT
 *
 * Memory with one lifetime: allocations are taken from blocks one after the other and freed all at
 * once. Not thread-safe: one arena per thread of work, or per object being built.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/checked_memory.h"

struct arena_block;

struct arena {
  struct arena_block *blocks; /* newest first */
  char *cursor, *limit;
};

/* Zeroed memory aligned for any type, and the same for count elements and one behind them, which an
 * array may end with. Never NULL: see checked_memory.h. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_array(struct arena *arena, size_t count, size_t element_bytes);

/* A copy of an array; `elements` may be NULL if there are none. */
void *arena_elements(struct arena *arena, const void *elements, size_t count, size_t element_bytes);
/* And of two, one behind the other. */
void *arena_joined(struct arena *arena, const void *first, size_t n_first, const void *then,
                   size_t n_then, size_t element_bytes);

/* An array of `n` elements that grows, moved if there is no room for one more. `*room` is 0 at
 * first; what it left stays in the arena, so a VECTOR is better for many. */
void *arena_more(struct arena *arena, void *at, u32 n, u32 *room, size_t element_bytes);

/* NUL-terminated copies; NULL of NULL. */
char *arena_copy(struct arena *arena, const char *text, size_t bytes);
char *arena_text(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A list, which may be NULL, with one more text: behind `between`, unless that is the first. */
char *arena_list(struct arena *arena, const char *list, const char *between, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* A text in the arena that this struct points to. */
#define say(of, ...) arena_printf((of)->arena, __VA_ARGS__)

/* ": why", which may be NULL: then nothing. */
#define say_why(of, why) ((why) ? say(of, ": %s", why) : "")

/* Frees everything the arena gave out; the arena is then empty and usable. SCOPED_ARENA before its
 * declaration does so at the end of the block. */
void arena_release(struct arena *arena);
#define SCOPED_ARENA __attribute__((cleanup(arena_release)))
