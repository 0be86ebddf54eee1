/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK 4096u
#define LARGEST_BLOCK (1u << 20)
#define ALIGNMENT alignof(max_align_t)

struct arena_block {
  struct arena_block *older;
  size_t bytes;
  alignas(max_align_t) char data[];
};

/* A block for at least `bytes`. Big requests get a block of their own behind the current one, so
 * that the room left in the current one is not lost. */
static void *arena_grow(struct arena *arena, size_t bytes) {
  size_t size = arena->blocks ? MIN(arena->blocks->bytes * 2, LARGEST_BLOCK) : FIRST_BLOCK;
  bool large = bytes > size / 4;
  struct arena_block *block = memory_zeroed(1, size_sum(sizeof(*block), large ? bytes : size));
  if (large && arena->blocks) {
    block->bytes = arena->blocks->bytes;
    block->older = arena->blocks->older;
    arena->blocks->older = block;
    return block->data;
  }
  block->bytes = large ? FIRST_BLOCK : size;
  block->older = arena->blocks;
  arena->blocks = block;
  arena->cursor = block->data + bytes;
  arena->limit = block->data + (large ? bytes : size);
  return block->data;
}

void *arena_alloc(struct arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2)
    memory_is_short(1, bytes);
  bytes = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
  if (bytes == 0)
    bytes = ALIGNMENT;
  if ((size_t)(arena->limit - arena->cursor) < bytes)
    return arena_grow(arena, bytes);
  void *memory = arena->cursor;
  arena->cursor += bytes;
  return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t element_bytes) {
  return arena_alloc(arena, size_product(size_sum(count, 1), element_bytes));
}

void *arena_elements(struct arena *arena, const void *elements, size_t count,
                     size_t element_bytes) {
  return arena_joined(arena, elements, count, NULL, 0, element_bytes);
}

void *arena_joined(struct arena *arena, const void *first, size_t n_first, const void *then,
                   size_t n_then, size_t element_bytes) {
  char *both = arena_array(arena, size_sum(n_first, n_then), element_bytes);
  if (n_first)
    memcpy(both, first, n_first * element_bytes);
  if (n_then)
    memcpy(both + n_first * element_bytes, then, n_then * element_bytes);
  return both;
}

void *arena_more(struct arena *arena, void *at, u32 n, u32 *room, size_t element_bytes) {
  if (n < *room)
    return at;
  if (*room > UINT32_MAX / 2)
    memory_is_short(size_product(*room, 2), element_bytes);
  *room = *room ? *room * 2 : 16;
  void *larger = arena_array(arena, *room, element_bytes);
  if (n)
    memcpy(larger, at, n * element_bytes);
  return larger;
}

char *arena_copy(struct arena *arena, const char *text, size_t bytes) {
  char *copy = arena_alloc(arena, size_sum(bytes, 1));
  memcpy(copy, text, bytes);
  return copy;
}

char *arena_text(struct arena *arena, const char *text) {
  return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  size_t bytes = length < 0 ? 1 : size_sum((size_t)length, 1); /* what cannot be shown is empty */
  char *text = arena_alloc(arena, bytes);
  if (length > 0)
    vsnprintf(text, bytes, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

char *arena_list(struct arena *arena, const char *list, const char *between, const char *format,
                 ...) {
  va_list arguments;
  va_start(arguments, format);
  SCOPED char *text = memory_vprintf(format, arguments);
  va_end(arguments);
  return list && *list ? arena_printf(arena, "%s%s%s", list, between, text)
                       : arena_text(arena, text);
}

void arena_release(struct arena *arena) {
  for (struct arena_block *block = arena->blocks, *older; block; block = older) {
    older = block->older;
    free(block);
  }
  *arena = (struct arena){0};
}
