/* SPDX-License-Identifier: MIT
 *
 * What an awake process learns of its children goes to the helper, in a table that needs no lock.
 */
#include "format/tscope_format.h"
#include "process/reaped.h"
#include "process/workers.h"

enum { SIGNAL_BITS = 7 };

static u32 ended[256]; /* a child's number and its signal; 0: free */

void tscope_reaped_later(pid_t child, int signal) {
  for (u32 i = 0; i < sizeof(ended) / sizeof(*ended); i++) {
    u32 none = 0;
    if (__atomic_compare_exchange_n(&ended[i], &none, (u32)child << SIGNAL_BITS | (u32)signal,
                                    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      break;
  }
  tscope_helper_wake();
}

void tscope_reaped_do(void) {
  for (u32 i = 0; i < sizeof(ended) / sizeof(*ended); i++) {
    u32 one = __atomic_load_n(&ended[i], __ATOMIC_RELAXED)
                  ? __atomic_exchange_n(&ended[i], 0, __ATOMIC_ACQUIRE)
                  : 0;
    if (one)
      tscope_reaped_here((pid_t)(one >> SIGNAL_BITS), (int)(one & ((1u << SIGNAL_BITS) - 1)));
  }
}
