/* SPDX-License-Identifier: MIT
 *
 * What is asked of the source of timelines.
 */
#include "model/rank_timeline.h"

#include <errno.h>

#include "model/flight_record.h"
#include "model/named_ranges.h"

const struct span_kind_words span_kinds[] = {
#define S(KIND, value, word, nameless) [value] = {word, nameless},
    TSCOPE_SPAN_KINDS(S)
#undef S
};

const struct flight_state_words flight_states[] = {
#define F(STATE, word, meaning) {word, meaning},
    TSCOPE_FLIGHT_STATES(F)
#undef F
};

int timeline_load(const struct model *model, u32 rank, struct timeline *timeline) {
  *timeline = (struct timeline){.rank = rank};
  if (rank >= model->n_ranks || !model->timelines)
    return -EINVAL;
  int result = model->timelines->load(model, rank, timeline);
  if (result != 0)
    timeline->source = NULL;
  else if (!timeline->source) /* a source may pass on what another one loads */
    timeline->source = model->timelines;
  return result;
}

void timeline_release(struct timeline *timeline) {
  if (timeline->source && timeline->source->release)
    timeline->source->release(timeline);
}

bool model_found(const struct model *model, u32 rank, bool settled, struct arena *arena,
                 struct carrier *found) {
  return model->timelines && model->timelines->found &&
         model->timelines->found(model, rank, settled, arena, found);
}

const char *timeline_name(const struct timeline *timeline, u32 name) {
  bool named = timeline->source && timeline->source->name;
  return named ? timeline->source->name(timeline, name) : "unknown";
}

int model_named_ranges(const struct model *model, u32 rank, struct arena *arena,
                       struct named_range **ranges, u32 *n) {
  *ranges = NULL;
  *n = 0;
  if (!model->timelines || !model->timelines->named_ranges)
    return 0;
  return model->timelines->named_ranges(model, rank, arena, ranges, n);
}

const struct flight_record *model_traced_calls(const struct model *model, struct arena *arena) {
  bool traced = model->timelines && model->timelines->flight;
  return traced ? model->timelines->flight(model, arena) : NULL;
}
