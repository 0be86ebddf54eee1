/* SPDX-License-Identifier: MIT */
#include "cupti_buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
  BUFFER_BYTES = 2 << 20,
  BUFFERS = 8,
  DISCARD_BYTES = 64 << 10,
  DISCARDS = 4, /* CUPTI asks for one buffer at a time; the last is shared by all that come after */
};

static uint8_t *memory;
static uint8_t taken[BUFFERS + DISCARDS];

static uint8_t *buffer_at(size_t i) {
  return i < BUFFERS ? memory + i * BUFFER_BYTES
                     : memory + (size_t)BUFFERS * BUFFER_BYTES + (i - BUFFERS) * DISCARD_BYTES;
}

int cupti_buffers_map(void) {
  if (memory)
    return 0;
  size_t bytes = (size_t)BUFFERS * BUFFER_BYTES + (size_t)DISCARDS * DISCARD_BYTES;
  void *map =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    return -errno;
  memory = map;
  return 0;
}

uint8_t *cupti_buffer_take(size_t *bytes) {
  size_t i = 0;
  while (i < BUFFERS + DISCARDS - 1 && __atomic_exchange_n(&taken[i], 1, __ATOMIC_ACQUIRE))
    i++;
  *bytes = i < BUFFERS ? BUFFER_BYTES : DISCARD_BYTES;
  return buffer_at(i);
}

bool cupti_buffer_counts(const uint8_t *buffer) {
  return buffer < buffer_at(BUFFERS);
}

void cupti_buffer_give(uint8_t *buffer, size_t used) {
  for (size_t i = 0; i < BUFFERS + DISCARDS; i++)
    if (buffer == buffer_at(i)) {
      memset(buffer, 0, used);
      __atomic_store_n(&taken[i], 0, __ATOMIC_RELEASE);
    }
}
