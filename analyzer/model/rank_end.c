/* SPDX-License-Identifier: MIT */
#include "base/trace_words.h"
#include "model/building.h"

void rank_end_place(struct rank_end *end, const struct rank_clock *clock) {
  i64 *const instants[] = {&end->end,          &end->alive,        &end->reaped,
                           &end->exception_at, &end->last_line_at, &end->failed_at};
  for (size_t i = 0; i < sizeof(instants) / sizeof(*instants); i++)
    *instants[i] = clock_to_axis(clock, *instants[i]);
}

const char *model_phase_at(const struct model *model, u32 rank, i64 time) {
  const char *name = NULL;
  if (!model->timelines) /* made by hand */
    return NULL;
  const struct rank_events *events = model_events(model, rank);
  for (u32 i = 0; i < events->phases.n && events->phases.at[i].start <= time; i++) {
    const struct rank_phase *phase = &events->phases.at[i];
    if (phase->end == NS_UNKNOWN || phase->end >= time)
      name = phase_word(phase->kind);
  }
  return name;
}

u32 model_own_calls(const struct model *model, u32 rank, u32 comm, struct own_call *calls,
                    u32 room) {
  u32 n = 0;
  if (!model->timelines) /* made by hand */
    return 0;
  const struct rank_events *events = model_events(model, rank);
  FOR_EACH(events->calls.at, events->calls.n, call) {
    if (call->failed || call->op >= TSCOPE_OP_SEND ||
        model_comm_of(model, rank, call->comm) != comm)
      continue;
    if (n < room)
      calls[n] = (struct own_call){call->start, call->bytes, call->op, call->dtype};
    n++;
  }
  return n;
}
