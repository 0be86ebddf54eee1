/* SPDX-License-Identifier: MIT
 *
 * Another thread of the job may be in setenv() while the copy is made, which may free the list of
 * entries. So the kernel reads the list and the entries: it returns an error for freed memory,
 * where a load of our own would end the job.
 */
#include "settings/process_environment.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inspect/memory_read.h"
#include "record/hook.h"

enum { COPY_BYTES = 1 << 20, PIECE = 1024 };

static char *copy;  /* entries one after the other, each with its end; an empty one ends the list */
static size_t used; /* without that last end */
static bool by_kernel;

/* Where the kernel reads no memory for us at all, entries are read as they are. */
static bool kernel_reads(void) {
  char probe = 1, got = 0;
  return tscope_read_memory(getpid(), (u64)(uintptr_t)&probe, &got, sizeof(got)) == 0;
}

static bool read_at(void *to, const void *from, size_t bytes) {
  if (by_kernel)
    return tscope_read_memory(getpid(), (u64)(uintptr_t)from, to, bytes) == 0;
  memcpy(to, from, bytes);
  return true;
}

static bool is_name(const char *entry) {
  size_t length = strcspn(entry, "=");
  if (!length || !entry[length])
    return false;
  for (size_t i = 0; i < length; i++)
    if (entry[i] <= ' ' || entry[i] == 0x7f)
      return false;
  return true;
}

/* Appends the entry at `from`, whole or not at all. */
static void copy_entry(const char *from) {
  size_t length = 0;
  for (;;) {
    size_t to_page_end = PIECE - (uintptr_t)(from + length) % PIECE; /* pages are whole pieces */
    char *to = copy + used + length;
    if (used + length + to_page_end + 1 > COPY_BYTES || !read_at(to, from + length, to_page_end))
      break;
    size_t text = strnlen(to, to_page_end);
    length += text;
    if (text == to_page_end)
      continue;
    if (is_name(copy + used))
      used += length + 1;
    break;
  }
  copy[used] = '\0';
}

bool tscope_environment_copy(void) {
  TSCOPE_KEEP_ERRNO;
  if (!copy) {
    void *memory = mmap(NULL, COPY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    copy = memory == MAP_FAILED ? NULL : memory;
  }
  by_kernel = kernel_reads();
  used = 0;
  if (copy)
    copy[0] = '\0';
  char *entry;
  for (char **list = environ; copy && list && read_at(&entry, list, sizeof(entry)) && entry; list++)
    copy_entry(entry);
  return copy;
}

const char *tscope_environment_next(const char *entry) {
  const char *next = entry ? entry + strlen(entry) + 1 : copy;
  return next && *next ? next : NULL;
}

const char *tscope_environment_get(const char *name) {
  size_t length = strlen(name);
  for (const char *entry = NULL; (entry = tscope_environment_next(entry));)
    if (strncmp(entry, name, length) == 0 && entry[length] == '=')
      return entry[length + 1] ? entry + length + 1 : NULL;
  return NULL;
}
