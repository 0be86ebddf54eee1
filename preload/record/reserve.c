/* SPDX-License-Identifier: MIT */
#include "record/reserve.h"

#include <sys/mman.h>
#include <unistd.h>

static void *map(int fd, size_t bytes) {
  int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_NORESERVE, fd, 0);
}

/* Where all memory is locked, a new mapping is, too, and counts for the job's limit: but not what
 * is added to one that is not locked any more. */
static void *grow_from_a_page(int fd, size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void *first = map(fd, page);
  if (first == MAP_FAILED)
    return MAP_FAILED;
  munlock(first, page);
  void *all = mremap(first, page, bytes, MREMAP_MAYMOVE);
  if (all == MAP_FAILED)
    munmap(first, page);
  return all;
}

void *tscope_reserve_map(int fd, size_t bytes) {
  void *memory = grow_from_a_page(fd, bytes);
  if (memory == MAP_FAILED)
    memory = map(fd, bytes);
  if (memory != MAP_FAILED)
    madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}
