/* SPDX-License-Identifier: MIT
 *
 * What the memory of one device is like, written or read.
 */
#include "analyses/memory/memory.h"

#define RESULT_TABLE "analyses/memory/memory_result.def"
#include "analyses/results/result_carries.h"

static void carry_uses(struct carrier *c, struct memory_use *uses, u32 n) {
  for (u32 i = 0; i < n; i++) {
    u32 kind = uses[i].kind;
    CARRY(c, &kind);
    CARRY(c, &uses[i].lowers_peak_bytes);
    c->bad |= kind >= ALLOCATION_CATEGORIES;
    uses[i].kind = c->bad ? 0 : kind;
  }
}

static void carry_by_category(struct carrier *c, struct memory_result *result) {
  result->n_by_category = carry_count(c, result->n_by_category, 8);
  CARRY_ARRAY(c, result->by_category, result->n_by_category);
  for (u32 i = 0; i < result->n_by_category; i++)
    carry_memory_use(c, &result->by_category[i]);
  carry_uses(c, result->by_category, result->n_by_category);
}

void memory_carry_result(struct carrier *c, struct memory_result *result) {
  bool counted = false;
  carry_memory_result(c, result);
  carry_uses(c, result->live_at_peak, result->n_live_at_peak);
  carry_by_category(c, result);
  CARRY_EACH(c, result, segments.expandable_known, segments.expandable_would_help,
             steps_are_certain);
  carry_numbers(c, &result->step_peak_bytes, &result->n_step_peaks, &counted);
  CARRY_EACH(c, result, growth_steps, growth_from_bytes, growth_to_bytes, growth_source_share,
             oom_requested_bytes, oom_free_bytes, oom_inactive_bytes);
}
