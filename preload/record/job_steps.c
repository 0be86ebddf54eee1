/* SPDX-License-Identifier: MIT */
#include "record/job_steps.h"

#include "record/families.h"

void tscope_step_ended(struct tscope_thread *thread, enum tscope_step_sign sign) {
  static u32 strongest, ended[TSCOPE_STEP_MARK + 1];
  u32 n = __atomic_add_fetch(&ended[sign], 1, __ATOMIC_RELAXED);
  u32 seen = __atomic_load_n(&strongest, __ATOMIC_RELAXED);
  while (n > 1 && seen < sign &&
         !__atomic_compare_exchange_n(&strongest, &seen, sign, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
    ;
  if (seen > sign || (seen < sign && n == 1))
    return;
  bool first = n == (sign ? 2 : 1);
  TSCOPE_FOR_EACH_FAMILY(i, step_ended)
    tscope_families[i]->step_ended(thread, sign == TSCOPE_STEP_MARK ? n - 1 : n, first);
}

void tscope_phase_ended(struct tscope_thread *thread, u32 phase, u64 start) {
  static u64 optimizer_ended;
  if (phase != TSCOPE_PHASE_OPTIMIZER ||
      __atomic_load_n(&optimizer_ended, __ATOMIC_RELAXED) > start)
    return;
  __atomic_store_n(&optimizer_ended, tscope_ticks(), __ATOMIC_RELAXED);
  tscope_step_ended(thread, TSCOPE_STEP_OPTIMIZER);
}
