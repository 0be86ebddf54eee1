/* SPDX-License-Identifier: MIT
 *
 * The functions of tscope.h. A process that calls one of them trains, so they wake it.
 */
#include "tscope.h"

#include <string.h>

#include "format/range_names.h"
#include "record/families.h"
#include "record/job_steps.h"

/* Deeper ranges are counted, so that pops match their pushes, and as lost. */
enum { RANGES_MAX = 64 };

struct ranges {
  u32 open;
  struct range {
    u64 *dur;
    u64 start;
    u16 phase;
  } range[RANGES_MAX];
};

const struct tscope_family tscope_api_family = {.thread_bytes = sizeof(struct ranges)};

static u16 phase_of(const char *name) {
  u8 phase = tscope_phase_of_range(name, strlen(name));
  return phase ? phase : TSCOPE_PHASE_USER;
}

TSCOPE_EXPORT void tscope_step(uint64_t step) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return;
  struct tscope_step_record record = {.step = step};
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_STEP, 0, &record, sizeof(record));
  tscope_step_ended(thread, TSCOPE_STEP_MARK);
  tscope_leave(thread);
}

TSCOPE_EXPORT void tscope_scalar(const char *name, double value, uint64_t step) {
  struct tscope_thread *thread = name ? tscope_enter(TSCOPE_WAKES) : NULL;
  if (!thread)
    return;
  struct tscope_scalar_record record = {.step = step, .name = tscope_string(thread, name)};
  memcpy(&record.bits, &value, sizeof(record.bits));
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_SCALAR, 0, &record, sizeof(record));
  tscope_leave(thread);
}

TSCOPE_EXPORT void tscope_range_push(const char *name) {
  struct tscope_thread *thread = name ? tscope_enter(TSCOPE_WAKES) : NULL;
  if (!thread)
    return;
  struct ranges *ranges = thread->family[TSCOPE_FAMILY_API];
  if (ranges->open < RANGES_MAX) {
    struct tscope_phase_record record = {.name = tscope_string(thread, name)};
    struct range range = {.start = tscope_ticks(), .phase = phase_of(name)};
    range.dur = tscope_span_open(thread, range.start, TSCOPE_REC_PHASE, range.phase, &record,
                                 sizeof(record));
    ranges->range[ranges->open] = range;
  } else {
    tscope_count_lost(TSCOPE_LOSS_RANGES, 1);
  }
  ranges->open++;
  tscope_leave(thread);
}

TSCOPE_EXPORT void tscope_range_pop(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  struct ranges *ranges = thread->family[TSCOPE_FAMILY_API];
  if (ranges->open) {
    ranges->open--;
    if (ranges->open < RANGES_MAX) {
      const struct range *range = &ranges->range[ranges->open];
      tscope_span_close(thread, range->dur, range->start);
      tscope_phase_ended(thread, range->phase, range->start);
    }
  }
  tscope_leave(thread);
}
