/* SPDX-License-Identifier: MIT
 *
 * Arrays that grow, for what is still being counted. Freed with free(vector.at).
 */
#ifndef TSCOPE_VECTOR_H
#define TSCOPE_VECTOR_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "format/tscope_format.h"

#define VECTOR(type)                                                                               \
  struct {                                                                                         \
    type *at;                                                                                      \
    u32 n, room;                                                                                   \
  }

/* Memory for one more element, or NULL. */
static inline void *vector_more(void *at, u32 *room, size_t bytes) {
  if (*room > UINT32_MAX / 2)
    return NULL;
  u32 more = *room ? *room * 2 : 16;
  void *grown = realloc(at, more * bytes);
  if (grown)
    *room = more;
  return grown;
}

/* Makes room for one more element and evaluates to whether there is. */
#define VECTOR_ROOM(vector)                                                                        \
  ((vector)->n < (vector)->room || ({                                                              \
     void *grown_ = vector_more((vector)->at, &(vector)->room, sizeof(*(vector)->at));             \
     if (grown_)                                                                                   \
       (vector)->at = grown_;                                                                      \
     grown_ != NULL;                                                                               \
   }))

/* Extends with zeroes so that `index` is there; evaluates to false when there is no memory. */
#define VECTOR_REACH(vector, index)                                                                \
  ({                                                                                               \
    bool reached_ = true;                                                                          \
    while (reached_ && (vector)->n <= (index)) {                                                   \
      reached_ = VECTOR_ROOM(vector);                                                              \
      if (reached_)                                                                                \
        memset(&(vector)->at[(vector)->n++], 0, sizeof(*(vector)->at));                            \
    }                                                                                              \
    reached_;                                                                                      \
  })

/* Appends; evaluates to false when there is no memory. */
#define VECTOR_PUSH(vector, ...)                                                                   \
  (VECTOR_ROOM(vector) && ((vector)->at[(vector)->n++] = (__VA_ARGS__), true))

#endif
