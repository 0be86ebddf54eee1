/* SPDX-License-Identifier: MIT */

#include "record/hook.h"

void tscope_failed_call(struct tscope_thread *thread, enum tscope_failed_call whose,
                        const char *what, i32 result) {
  enum { MAX_RECORDS = 64 };
  static u32 written;
  if (__atomic_fetch_add(&written, 1, __ATOMIC_RELAXED) >= MAX_RECORDS)
    return;
  TSCOPE_KEEP_ERRNO;
  struct tscope_failed_call_record record = {.what = tscope_string(thread, what), .result = result};
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_FAILED_CALL, (u16)whose, &record,
                sizeof(record));
}
