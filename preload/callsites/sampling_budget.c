/* SPDX-License-Identifier: MIT */
#include "callsites/sampling_budget.h"

enum sampling_change sampling_budget_update(struct sampling_budget *budget, u64 now, u64 spent,
                                            u64 always) {
  const i64 most = (i64)budget->hz * SAMPLING_CREDIT_MS / 1000;
  if (!budget->last) {
    budget->last = now;
    budget->left = most;
  }
  i64 income = (i64)(now - budget->last) * SAMPLING_PER_MILLE / 1000;
  i64 left = budget->left + income - (i64)(spent - budget->spent);
  i64 of_always = (i64)(always - budget->always);
  budget->left = CLAMP(left, -most, most);
  budget->last = now;
  budget->spent = spent;
  budget->always = always;
  if (budget->left < 0)
    return of_always > income ? SAMPLING_LESS_OF_ALL : SAMPLING_LESS;
  return budget->left > most / 2 ? SAMPLING_MORE : SAMPLING_UNCHANGED;
}

u64 sampling_cost(u64 hz, u64 ticks, u32 most_us) {
  u64 most = hz / 1000000 * most_us;
  return MIN(ticks, most);
}
