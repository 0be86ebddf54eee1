/* SPDX-License-Identifier: MIT */
#include "model/rank_end.h"

#include <string.h>

#include "base/texts.h"
#include "import/tscope/events/definitions.h"
#include "import/tscope/files/process_state.h"
#include "model/building.h"

/* "function\nline\nfile" */
static void read_place(struct rank_end *end, const struct tscope_file_header *header,
                       struct arena *arena) {
  char *rest = arena_text(arena, header->exception_place);
  const char *function = strsep(&rest, "\n"), *line = strsep(&rest, "\n");
  if (!rest || !*rest)
    return;
  end->exception_line = (u32)leading_number(line, UINT32_MAX, NULL);
  end->exception_function = *function ? function : NULL;
  end->exception_file = rest;
}

void rank_end_read(struct rank_end *end, const struct tscope_file_header *header,
                   const struct rank_events *events, struct arena *arena) {
  *end =
      (struct rank_end){.known = header->alive_ticks || header->end_ticks,
                        .kind = (u8)header->end_kind,
                        .status = header->end_status,
                        .signal = header->reaped_signal,
                        .end = definition_ns(events->definitions, header->end_ticks),
                        .alive = definition_ns(events->definitions, header->alive_ticks),
                        .reaped = NS_UNKNOWN,
                        .out_of_memory_kills = (u32)MIN(out_of_memory_kills(header), UINT32_MAX),
                        .exception_at = definition_ns(events->definitions, header->exception_ticks),
                        .last_line_at = definition_ns(events->definitions, header->last_line_ticks),
                        .failed = events->failed.what,
                        .failed_result = events->failed.result,
                        .failed_whose = events->failed.whose,
                        .failed_at = events->failed.what ? events->failed.time : NS_UNKNOWN};
  /* A damaged file's clocks may be further apart than a time can express. */
  if (header->reaped_realtime_ns &&
      __builtin_sub_overflow((i64)header->reaped_realtime_ns, events->realtime_minus_monotonic,
                             &end->reaped))
    end->reaped = NS_UNKNOWN;
  if (end->last_line_at != NS_UNKNOWN && header->last_line[0])
    end->last_line = arena_text(arena, header->last_line);
  if (end->exception_at == NS_UNKNOWN || !header->exception[0])
    return;
  end->exception = arena_text(arena, header->exception);
  read_place(end, header, arena);
}
