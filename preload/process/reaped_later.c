/* SPDX-License-Identifier: MIT
 *
 * What an awake process learns of its children goes to the helper, in a table that needs no lock.
 */
#include "process/reaped.h"
#include "process/workers.h"
#include "record/trace_definitions.h"

enum { SIGNAL_BITS = 7, MOST = 256 };

static u32 ended[MOST]; /* a child's number and its signal; 0: free */
static bool more_ended; /* than the table has room for */

void tscope_reaped_later(pid_t child, int signal) {
  bool kept = false;
  for (u32 i = 0; i < MOST && !kept; i++) {
    u32 none = 0;
    kept = __atomic_compare_exchange_n(&ended[i], &none, (u32)child << SIGNAL_BITS | (u32)signal,
                                       false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  }
  if (!kept)
    __atomic_store_n(&more_ended, true, __ATOMIC_RELAXED);
  tscope_helper_wake();
}

_Static_assert(MOST == 256, "the text below says so");

void tscope_reaped_do(void) {
  static bool said;
  if (__atomic_load_n(&more_ended, __ATOMIC_RELAXED))
    tscope_say_once(&said, "only of 256 that ended at once", "signals that ended children");
  for (u32 i = 0; i < MOST; i++) {
    u32 one = __atomic_load_n(&ended[i], __ATOMIC_RELAXED)
                  ? __atomic_exchange_n(&ended[i], 0, __ATOMIC_ACQUIRE)
                  : 0;
    if (one)
      tscope_reaped_here((pid_t)(one >> SIGNAL_BITS), (int)(one & ((1u << SIGNAL_BITS) - 1)));
  }
}
