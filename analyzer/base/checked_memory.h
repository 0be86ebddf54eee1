/* SPDX-License-Identifier: MIT
 *
 * All memory of the analyzer comes from here, so that no size wraps and no caller has to ask
 * whether there was any: an allocation that fails ends the program with one line, which says how
 * much was asked for and what to do. What a file can make a reader allocate is bounded before,
 * by import/file_budget.h, which counts by the account below.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/each.h"
#include "format/tscope_format.h"

/* Sums and products of sizes, at most SIZE_MAX: more than there is. tests/project/sizes.py wants
 * them in every allocation whose size is calculated, because u32 + 1 may be 0. */
static inline size_t size_sum(size_t a, size_t b) {
  size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static inline size_t size_product(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

/* Room for `count` elements; freed with free(). Never NULL, also for no elements. */
#define MEMORY_FUNCTION __attribute__((returns_nonnull, warn_unused_result))
void *memory_array(size_t count, size_t element_bytes) MEMORY_FUNCTION;
void *memory_zeroed(size_t count, size_t element_bytes) MEMORY_FUNCTION;
/* As realloc(): what `old` holds is moved. */
void *memory_resized(void *old, size_t count, size_t element_bytes) MEMORY_FUNCTION;
/* The first `count` elements, where there was room for more. */
void *memory_less(void *old, size_t count, size_t element_bytes) MEMORY_FUNCTION;
/* As strdup(), asprintf() and vasprintf(). */
char *memory_text(const char *text) MEMORY_FUNCTION;
char *memory_printf(const char *format, ...) MEMORY_FUNCTION __attribute__((format(printf, 1, 2)));
char *memory_vprintf(const char *format, va_list arguments) MEMORY_FUNCTION
    __attribute__((format(printf, 1, 0)));
/* Before the declaration of a pointer, VECTOR or hash index that has a value: what it then points
 * to is freed at the end of the block, however that is left. */
#define SCOPED __attribute__((cleanup(memory_free_scoped)))
static inline void memory_free_scoped(void *place) {
  void *memory;
  memcpy(&memory, place, sizeof(memory)); /* a VECTOR begins with its memory */
  free(memory);
}
/* As open_memstream() and the fclose() of it, after which the text is whole. */
FILE *memory_stream(char **text, size_t *bytes) MEMORY_FUNCTION;
void memory_stream_close(FILE *stream);

/* What one thread allocates while it reads one file. */
struct memory_account {
  u64 taken, most; /* bytes; what is freed stays counted */
};

/* Counts for the calling thread from now on; NULL: nobody counts. Returns who counted before. */
struct memory_account *memory_account_set(struct memory_account *account);

/* Counts an allocation that was made elsewhere. */
void memory_count(size_t bytes);

/* Ends the program for lack of memory. */
_Noreturn void memory_is_short(size_t count, size_t element_bytes);

/* Called before that, once: puts in order what must not be left behind. */
void memory_when_short(void (*tidy)(void));
