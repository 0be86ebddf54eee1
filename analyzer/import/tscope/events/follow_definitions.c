/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/follow_definitions.h"

#include "import/tscope/events/collector.h"

/* What a job that runs for weeks may make its reader keep. */
enum { MOST_ANCHORS = 64, MOST_FRAMES = 1 << 15, MOST_STACKS = 1 << 12 };

static void map_ticks(struct followed_definitions *definitions, const struct trace_file *file) {
  struct collector *into = definitions->collector;
  arena_release(&definitions->ticks);
  tick_map_build(&definitions->now.ticks, &file->header, into->anchors.at, into->anchors.n,
                 &definitions->ticks);
  definitions->new_anchors = false;
}

void definitions_follow_begin(struct followed_definitions *definitions,
                              const struct trace_file *file) {
  *definitions = (struct followed_definitions){
      .now.realtime_minus_monotonic =
          (i64)(file->header.start_realtime_ns - file->header.start_monotonic_ns),
      .collector = memory_zeroed(1, sizeof(struct collector))};
  map_ticks(definitions, file);
}

/* A long run has more anchors than are worth keeping: of the older ones every second is dropped. */
static void thin_out_anchors(struct collector *into) {
  u32 kept = 1;
  if (into->anchors.n < MOST_ANCHORS)
    return;
  for (u32 i = 2; i < into->anchors.n; i += 2)
    into->anchors.at[kept++] = into->anchors.at[i];
  into->anchors.n = kept;
}

static void add_record(struct followed_definitions *definitions,
                       const struct tscope_record *record) {
  struct collector *into = definitions->collector;
  switch (record->type) {
  case TSCOPE_REC_SHAPE:
  case TSCOPE_REC_STREAM:
  case TSCOPE_REC_GRAPH:
  case TSCOPE_REC_GRAPH_CHILD:
  case TSCOPE_REC_GRAPH_GEMM:
    return;
  case TSCOPE_REC_ANCHOR:
    thin_out_anchors(into);
    definitions->new_anchors = true;
    break;
  case TSCOPE_REC_INFO:
    definitions->new_infos = true;
    break;
  case TSCOPE_REC_FRAME:
  case TSCOPE_REC_NATIVE_FRAME:
    if (into->frames.n >= MOST_FRAMES)
      return;
    definitions->new_stacks = true;
    break;
  case TSCOPE_REC_STACK:
    if (into->stacks.n >= MOST_STACKS)
      return;
    definitions->new_stacks = true;
    break;
  case TSCOPE_REC_STALL:
    stall_records_release(&into->stalls);
    into->stalls = (struct stall_records){0};
    definitions->new_stalls = true;
    break;
  case TSCOPE_REC_STALL_END:
  case TSCOPE_REC_THREAD_STATE:
  case TSCOPE_REC_THREAD_STACK:
  case TSCOPE_REC_PEER_STATE:
  case TSCOPE_REC_COMM_STATE:
    definitions->new_stalls = true;
    break;
  default:
    break;
  }
  collector_add(into, record);
}

void definitions_follow_chunk(struct followed_definitions *definitions,
                              const struct trace_file *file, const struct trace_chunk *chunk) {
  struct collector *into = definitions->collector;
  struct trace_cursor cursor = trace_records(chunk);
  into->out = &definitions->now;
  into->most_numbers = file->stored / sizeof(struct tscope_record);
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    add_record(definitions, record);
  if (definitions->new_anchors)
    map_ticks(definitions, file);
  definitions->now.strings = into->strings.at;
  definitions->now.n_strings = into->strings.n;
  definitions->now.comms = into->comms.at;
  definitions->now.n_comms = into->comms.n;
}

/* Names may be announced after what is called so. */
static void refer_to_lists(struct definitions *now, struct collector *into) {
  for (u32 i = 0; i < into->comms.n; i++)
    into->comms.at[i].name = definition_string(now, into->comm_names.at[i]);
#define L(list, element)                                                                           \
  now->list = into->list.at;                                                                       \
  now->n_##list = into->list.n;
  TEXT_LISTS(L)
  KEPT_LISTS(L)
#undef L
}

void definitions_follow_finish(struct followed_definitions *definitions,
                               const struct trace_file *file) {
  struct collector *into = definitions->collector;
  struct definitions *now = &definitions->now;
  into->out = now;
  refer_to_lists(now, into);
  if (definitions->new_stacks)
    definitions_sort_stacks(now);
  if (definitions->new_infos) {
    arena_release(&definitions->infos);
    memset(now->info, 0, sizeof(now->info));
    into->arena = &definitions->infos;
    collector_finish_infos(into);
  }
  if (definitions->new_stalls || (definitions->new_stacks && now->n_stalls)) {
    arena_release(&definitions->stalls);
    now->stalls = NULL;
    now->n_stalls = 0;
    stall_records_finish(&into->stalls, file->header.pid, now, &definitions->stalls);
  }
  definitions->new_infos = definitions->new_stalls = definitions->new_stacks = false;
}

void definitions_follow_end(struct followed_definitions *definitions) {
  if (definitions->collector)
    collector_release(definitions->collector);
  free(definitions->collector);
  arena_release(&definitions->now.text);
  arena_release(&definitions->infos);
  arena_release(&definitions->ticks);
  arena_release(&definitions->stalls);
  *definitions = (struct followed_definitions){0};
}
