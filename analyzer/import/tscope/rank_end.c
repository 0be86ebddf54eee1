/* SPDX-License-Identifier: MIT */
#include "model/rank_end.h"

#include <string.h>

#include "model/internal.h"

static i64 tick_ns(const struct spine *spine, u64 ticks) {
  const struct tick_map *map = &spine->definitions.ticks;
  return ticks ? tick_map_ns(map, ticks >> map->shift) : NS_UNKNOWN;
}

bool rank_end_read(struct rank_end *end, const struct tscope_file_header *header,
                   const struct spine *spine, struct arena *arena) {
  *end = (struct rank_end){.told = header->alive_ticks || header->end_ticks,
                           .kind = (u8)header->end_kind,
                           .status = header->end_status,
                           .signal = header->reaped_signal,
                           .end = tick_ns(spine, header->end_ticks),
                           .alive = tick_ns(spine, header->alive_ticks),
                           .reaped = NS_UNKNOWN,
                           .exception_at = tick_ns(spine, header->exception_ticks),
                           .failed = spine->failed.what,
                           .failed_result = spine->failed.result,
                           .failed_whose = spine->failed.whose,
                           .failed_at = spine->failed.what ? spine->failed.time : NS_UNKNOWN};
  if (header->reaped_realtime_ns)
    end->reaped =
        (i64)header->reaped_realtime_ns - spine->definitions.realtime_minus_monotonic;
  if (header->oom_kills_at_start != UINT64_MAX && header->oom_kills != UINT64_MAX &&
      header->oom_kills > header->oom_kills_at_start)
    end->out_of_memory_kills = (u32)(header->oom_kills - header->oom_kills_at_start);
  if (end->exception_at == NS_UNKNOWN || !header->exception[0])
    return true;
  char text[sizeof header->exception + 1] = "";
  memcpy(text, header->exception, sizeof header->exception);
  return (end->exception = arena_text(arena, text)) != NULL;
}

void rank_end_place(struct rank_end *end, const struct rank_clock *clock) {
  i64 *const instants[] = {&end->end, &end->alive, &end->reaped, &end->exception_at,
                           &end->failed_at};
  for (size_t i = 0; i < sizeof instants / sizeof *instants; i++)
    *instants[i] = clock_to_axis(clock, *instants[i]);
}

const char *model_phase_at(const struct model *model, u32 rank, i64 time) {
  static const char *const names[] = {
#define X(NAME, value, text) [value] = text,
      TSCOPE_PHASES(X)
#undef X
  };
  const struct model_internal *internal = internal_of(model);
  const char *name = NULL;
  if (model->timelines != &trace_timelines) /* made by hand, or of another input */
    return NULL;
  const struct spine *spine = &internal->spines[rank];
  for (u32 i = 0; i < spine->phases.n && spine->phases.at[i].start <= time; i++) {
    const struct spine_phase *phase = &spine->phases.at[i];
    if ((phase->end == NS_UNKNOWN || phase->end >= time) &&
        phase->kind < sizeof names / sizeof *names)
      name = names[phase->kind];
  }
  return name;
}

u32 model_own_calls(const struct model *model, u32 rank, u32 comm, struct own_call *calls,
                    u32 room) {
  const struct model_internal *internal = internal_of(model);
  u32 n = 0;
  if (model->timelines != &trace_timelines) /* made by hand, or of another input */
    return 0;
  const struct spine *spine = &internal->spines[rank];
  for (u32 i = 0; i < spine->calls.n; i++) {
    const struct spine_call *call = &spine->calls.at[i];
    if (call->failed || call->op >= TSCOPE_OP_SEND || call->comm >= spine->definitions.n_comms ||
        internal->comm_of[rank][call->comm] != comm)
      continue;
    if (n < room)
      calls[n] = (struct own_call){call->start, call->bytes, call->op, call->dtype};
    n++;
  }
  return n;
}
