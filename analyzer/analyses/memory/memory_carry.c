/* SPDX-License-Identifier: MIT
 *
 * What the memory of one device is like, written or read.
 */
#include "analyses/memory/memory.h"

#define RESULT_TABLE "analyses/memory/memory_result.def"
#include "analyses/results/result_carries.h"

static void carry_uses(struct carrier *c, struct memory_use *uses, u32 n) {
  FOR_EACH_CHANGED(uses, n, use) {
    u32 kind = use->kind;
    CARRY(c, &kind);
    CARRY(c, &use->lowers_peak_bytes);
    c->bad |= kind >= ALLOCATION_CATEGORIES;
    use->kind = c->bad ? 0 : kind;
  }
}

static void carry_by_category(struct carrier *c, struct memory_result *result) {
  result->n_by_category = carry_count(c, result->n_by_category, 8);
  CARRY_ARRAY(c, result->by_category, result->n_by_category);
  FOR_EACH_CHANGED(result->by_category, result->n_by_category, one)
    carry_memory_use(c, one);
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
