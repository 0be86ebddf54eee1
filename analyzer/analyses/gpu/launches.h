/* SPDX-License-Identifier: MIT
 *
 * One rank's sums while launches.c counts.
 */
#ifndef TSCOPE_LAUNCHES_H
#define TSCOPE_LAUNCHES_H

#include "analyses/analysis.h"
#include "base/vector.h"

#define DELAY_BUCKETS 1280u  /* up to 2^40 ns */
#define MEMCPY_DIRECTIONS 7u /* enum tscope_memcpy */

struct memcpy_sum {
  u64 count, unknown; /* unknown: of which the size is not known */
  i64 ns;
  double bytes;
};

struct fill_sum {
  const char *name;
  u64 count;
  i64 ns;
};

struct launch_sums {
  bool known;
  u64 kernels, short_kernels, launches, syncs, recomputations, fill_count;
  i64 short_ns, sync_ns, recompute_ns, fill_ns;
  i64 longest_delay, deepest, queue_span_ns, full_ns;
  double queued_ns;
  u32 *delays; /* [n_delays] from the bucket first_delay on: most of them are alike */
  u32 first_delay, n_delays;
  struct memcpy_sum memcpys[MEMCPY_DIRECTIONS];
  struct fill_sum *fills; /* [n_fills], most time first; names are its own */
  u32 n_fills;
};

#endif
