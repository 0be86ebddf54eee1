/* SPDX-License-Identifier: MIT
 *
 * The floor with which costs are compared: the least work of any recorder for a call, which is two
 * readings of the processor's counter and one 32-byte store to a warm page of a shared mapping.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "format/clock_ns.h"

enum { CALLS = 1000 };

static inline i64 now_ns(void) {
  return clock_ns(CLOCK_MONOTONIC);
}

static inline void fail(const char *what) {
  perror(what);
  exit(1);
}

static inline int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline double median(double *values, size_t count) {
  qsort(values, count, sizeof(*values), ascending);
  return values[count / 2];
}

struct entry {
  u64 start, end, a, b;
};

static inline struct entry *shared_pages(const char *directory) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/floor", directory);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || posix_fallocate(fd, 0, 4096))
    fail(path);
  struct entry *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED)
    fail("mmap");
  return page;
}

static inline u64 counter(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  u64 ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

__attribute__((noinline, unused)) static double measure_floor(volatile struct entry *page) {
  i64 begin = now_ns();
  for (u64 i = 0; i < CALLS; i++) {
    u64 start = counter();
    u64 end = counter();
    volatile struct entry *entry = &page[i % (4096 / sizeof(*page))];
    entry->start = start;
    entry->end = end;
    entry->a = i;
    entry->b = 0;
  }
  return (double)(now_ns() - begin) / CALLS;
}
