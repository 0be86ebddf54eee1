/* SPDX-License-Identifier: MIT */
#include "callsites/looking_rate.h"

#include "record/random.h"

enum { PER_S = 1000000000 };

/* What is left is spent within about so long; what is missing is made up for so. */
#define SPENT_WITHIN_S 5.0
#define INCOME (SAMPLING_PER_MILLE / 1e3)
#define CREDIT_S (SAMPLING_CREDIT_MS / 1e3)

static void measure(struct looking_rate *rate, u64 cpu_ns, u32 looks, bool trains) {
  u32 n = looks - rate->looks;
  if (trains && n) {
    double ns = (double)(cpu_ns - rate->cpu_ns) / n;
    rate->look_ns = rate->look_ns > 0 ? rate->look_ns + (ns - rate->look_ns) / 8 : ns;
  }
  rate->cpu_ns = cpu_ns;
  rate->looks = looks;
}

/* Of one core. While most of the credit is there, looks may cost what they do: the first ones, at
 * stacks that are not known yet, do not show what others will cost. */
static double share_allowed(const struct looking_rate *rate) {
  double left_s = (double)rate->budget.left / PER_S;
  return left_s > CREDIT_S / 2 ? 1 : INCOME + left_s / SPENT_WITHIN_S;
}

u32 looking_rate_update(struct looking_rate *rate, u64 now_ns, u64 cpu_ns, u32 looks, bool trains) {
  rate->budget.hz = PER_S;
  sampling_budget_update(&rate->budget, now_ns, cpu_ns, 0);
  measure(rate, cpu_ns, looks, trains);
  double share = share_allowed(rate), us = rate->look_ns / 1e3;
  u32 interval = LEAST_LOOK_INTERVAL_US;
  while (interval < MOST_LOOK_INTERVAL_US && us > share * interval)
    interval *= 2;
  /* Shorter only where there is some room: the mean cost is not known exactly. */
  if (interval == rate->interval_us / 2 && us > 0.8 * share * interval)
    interval *= 2;
  rate->interval_us = interval;
  return interval;
}

u64 looking_rate_next_ns(u32 interval_us, u64 *chance) {
  return interval_us * 1000ull * (512 + tscope_random_below(chance, 1024)) / 1024;
}
