/* SPDX-License-Identifier: MIT */
#include "record/hook.h"
#include "record/process_trace.h"

static u64 lost_before_wake[TSCOPE_LOSS_REASONS];

void tscope_count_lost(enum tscope_loss reason, u64 records) {
  struct tscope_file_header *header = tscope_trace.header;
  u64 *lost = header ? header->lost : lost_before_wake;
  if (header)
    __atomic_fetch_add(&header->lost_singly, records, __ATOMIC_RELEASE);
  __atomic_fetch_add(&lost[reason], records, __ATOMIC_RELAXED);
}

void tscope_count_lost_early(void) {
  for (u32 reason = 0; reason < TSCOPE_LOSS_REASONS; reason++) {
    u64 lost = __atomic_exchange_n(&lost_before_wake[reason], 0, __ATOMIC_RELAXED);
    if (lost)
      tscope_count_lost((enum tscope_loss)reason, lost);
  }
}
