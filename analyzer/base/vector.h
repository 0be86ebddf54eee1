/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow, for what is still being counted. Freed with free(vector.at).
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"

#define VECTOR(type)                                                                               \
  struct {                                                                                         \
    type *at;                                                                                      \
    u32 n, room;                                                                                   \
  }

/* Memory for one more element. */
static inline void *vector_more(void *at, u32 *room, size_t bytes) {
  if (*room > UINT32_MAX / 2)
    memory_is_short(size_product(*room, 2), bytes);
  *room = *room ? *room * 2 : 16;
  return memory_resized(at, *room, bytes);
}

/* Makes room for one more element. */
#define VECTOR_ROOM(vector)                                                                        \
  do {                                                                                             \
    if ((vector)->n >= (vector)->room)                                                             \
      (vector)->at = vector_more((vector)->at, &(vector)->room, sizeof(*(vector)->at));            \
  } while (0)

/* Makes room for as many elements as are expected. */
#define VECTOR_EXPECT(vector, elements)                                                            \
  do {                                                                                             \
    u32 expected = (elements);                                                                     \
    if (expected > (vector)->room) {                                                               \
      (vector)->at = memory_resized((vector)->at, expected, sizeof(*(vector)->at));                \
      (vector)->room = expected;                                                                   \
    }                                                                                              \
  } while (0)

/* Gives back what is left over when all elements are there. */
#define VECTOR_FIT(vector)                                                                         \
  do {                                                                                             \
    if ((vector)->n < (vector)->room) {                                                            \
      (vector)->at = memory_less((vector)->at, (vector)->n, sizeof(*(vector)->at));                \
      (vector)->room = (vector)->n;                                                                \
    }                                                                                              \
  } while (0)

/* A copy of the elements in an arena. */
#define VECTOR_KEPT(vector, arena)                                                                 \
  arena_elements(arena, (vector)->at, (vector)->n, sizeof(*(vector)->at))

/* Extends with zeroes so that `index` is there. */
#define VECTOR_REACH(vector, index)                                                                \
  do {                                                                                             \
    while ((vector)->n <= (index)) {                                                               \
      VECTOR_ROOM(vector);                                                                         \
      memset(&(vector)->at[(vector)->n++], 0, sizeof(*(vector)->at));                              \
    }                                                                                              \
  } while (0)

/* Appends. */
#define VECTOR_PUSH(vector, ...)                                                                   \
  do {                                                                                             \
    VECTOR_ROOM(vector);                                                                           \
    (vector)->at[(vector)->n++] = (__VA_ARGS__);                                                   \
  } while (0)
