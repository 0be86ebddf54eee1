/* SPDX-License-Identifier: MIT */
#include "base/checked_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/exit_status.h"

static _Thread_local struct memory_account *counting;
static void (*_Atomic last_act)(void);

struct memory_account *memory_account_set(struct memory_account *account) {
  struct memory_account *before = counting;
  counting = account;
  return before;
}

void memory_count(size_t bytes) {
  if (counting)
    counting->taken = size_sum(counting->taken, bytes);
}

void memory_when_short(void (*tidy)(void)) {
  atomic_store(&last_act, tidy);
}

/* Only the first thread says it. Other threads may hold locks of the C library: nothing that needs
 * them. */
_Noreturn void memory_is_short(size_t count, size_t element_bytes) {
  static atomic_flag ending = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&ending))
    pause();
  void (*tidy)(void) = atomic_load(&last_act);
  if (tidy)
    tidy();
  size_t bytes = size_product(count, element_bytes);
  char line[256];
  int n = snprintf(line, sizeof(line),
                   "%s: no memory for %s%zu bytes more. Free memory, raise the limit (ulimit -v, "
                   "the container's), or read less: --steps, --quick, fewer files.\n",
                   program_invocation_short_name, bytes == SIZE_MAX ? "over " : "", bytes);
  if (write(STDERR_FILENO, line, (size_t)n) < 0) {
    /* nobody can be told */
  }
  _exit(STATUS_BAD);
}

/* Faults of small pages are up to a tenth of the time that a report takes. Where the system leaves
 * it to programs, the whole large pages within a block are asked for as such. */
static void want_large_pages(void *memory, size_t bytes) {
  const uintptr_t large = 2u << 20;
  uintptr_t from = ((uintptr_t)memory + large - 1) & ~(large - 1),
            to = ((uintptr_t)memory + bytes) & ~(large - 1);
  if (to > from)
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
}

void *memory_resized(void *old, size_t count, size_t element_bytes) {
  size_t bytes = size_product(count, element_bytes);
  void *memory = bytes <= SIZE_MAX / 2 ? realloc(old, MAX(bytes, 1)) : NULL;
  if (!memory)
    memory_is_short(count, element_bytes);
  memory_count(bytes);
  want_large_pages(memory, bytes);
  return memory;
}

void *memory_less(void *old, size_t count, size_t element_bytes) {
  void *memory = realloc(old, count ? count * element_bytes : 1);
  return memory ? memory : old;
}

void *memory_array(size_t count, size_t element_bytes) {
  return memory_resized(NULL, count, element_bytes);
}

void *memory_zeroed(size_t count, size_t element_bytes) {
  void *memory = calloc(MAX(count, 1), MAX(element_bytes, 1));
  if (!memory)
    memory_is_short(count, element_bytes);
  size_t bytes = size_product(count, element_bytes);
  memory_count(bytes);
  want_large_pages(memory, bytes);
  return memory;
}

char *memory_text(const char *text) {
  size_t bytes = strlen(text) + 1;
  return memcpy(memory_array(bytes, 1), text, bytes);
}

/* In two passes, so that what a lack of memory says is how much was asked for. */
char *memory_vprintf(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  size_t bytes = length < 0 ? 1 : size_sum((size_t)length, 1); /* what cannot be shown is empty */
  char *text = memory_zeroed(bytes, 1);
  if (length > 0)
    vsnprintf(text, bytes, format, again);
  va_end(again);
  return text;
}

char *memory_printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = memory_vprintf(format, arguments);
  va_end(arguments);
  return text;
}

FILE *memory_stream(char **text, size_t *bytes) {
  FILE *stream = open_memstream(text, bytes);
  if (!stream)
    memory_is_short(BUFSIZ, 1);
  return stream;
}

void memory_stream_close(FILE *stream) {
  if (fclose(stream) != 0)
    memory_is_short(BUFSIZ, 1);
}
