/* SPDX-License-Identifier: MIT */
#include "gpu/cupti_buffers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "record/hook.h"
#include "record/reserve.h"

/* CUPTI holds a buffer back while any work in it runs, so small buffers come sooner. This size
 * holds one or two thousand kernels. */
enum { BUFFER_BYTES = 512 << 10, BUFFERS = 64, DISCARD_BYTES = 64 << 10, DISCARDS = 256 };

static uint8_t *memory;
static uint8_t in_use[BUFFERS];
static uint8_t *discards[DISCARDS]; /* the spare buffers in use, each with its own mapping */

int cupti_buffers_map(void) {
  if (memory)
    return 0;
  void *map = tscope_reserve_map(-1, (size_t)BUFFERS * BUFFER_BYTES);
  if (map == MAP_FAILED)
    return -errno;
  memory = map;
  return 0;
}

static uint8_t *map_discard(void) {
  TSCOPE_KEEP_ERRNO;
  void *map = mmap(NULL, DISCARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return NULL;
  for (size_t i = 0; i < DISCARDS; i++) {
    uint8_t *none = NULL;
    if (__atomic_compare_exchange_n(&discards[i], &none, map, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
      return map;
  }
  munmap(map, DISCARD_BYTES);
  return NULL;
}

uint8_t *cupti_buffer_acquire(size_t *bytes) {
  *bytes = BUFFER_BYTES;
  for (size_t i = 0; i < BUFFERS; i++)
    if (!__atomic_load_n(&in_use[i], __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&in_use[i], 1, __ATOMIC_ACQUIRE))
      return memory + i * BUFFER_BYTES;
  uint8_t *discard = map_discard();
  *bytes = discard ? DISCARD_BYTES : 0;
  return discard;
}

static size_t discard_index(const uint8_t *buffer) {
  size_t i = 0;
  while (i < DISCARDS && __atomic_load_n(&discards[i], __ATOMIC_ACQUIRE) != buffer)
    i++;
  return i;
}

enum cupti_buffer cupti_buffer_kind(const uint8_t *buffer) {
  uintptr_t at = (uintptr_t)buffer - (uintptr_t)memory;
  if (memory && at < (uintptr_t)BUFFERS * BUFFER_BYTES)
    return CUPTI_BUFFER_KEPT;
  return discard_index(buffer) < DISCARDS ? CUPTI_BUFFER_DISCARDED : CUPTI_BUFFER_FOREIGN;
}

void cupti_buffer_release(uint8_t *buffer, size_t used) {
  size_t i;
  switch (cupti_buffer_kind(buffer)) {
  case CUPTI_BUFFER_KEPT:
    memset(buffer, 0, used);
    __atomic_store_n(&in_use[(size_t)(buffer - memory) / BUFFER_BYTES], 0, __ATOMIC_RELEASE);
    break;
  case CUPTI_BUFFER_DISCARDED:
    i = discard_index(buffer);
    __atomic_store_n(&discards[i], NULL, __ATOMIC_RELEASE);
    munmap(buffer, DISCARD_BYTES);
    break;
  case CUPTI_BUFFER_FOREIGN:
    break;
  }
}
