/* SPDX-License-Identifier: MIT */
#include "import/tscope/memory_sources.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/texts.h"
#include "model/memory_frames.h"

#define MOST_OPEN_PHASES 64u

/* The innermost phase at each event: of the open phases, the one that began last. */
static void find_phases(const struct memory_sources_of *of, u32 n_kinds) {
  struct memory_history *history = of->history;
  const struct rank_events *events = model_events(of->model, of->rank);
  const struct rank_phase *open[MOST_OPEN_PHASES];
  u32 n_open = 0, next = 0;
  FOR_EACH_CHANGED(history->events, history->n_events, event) {
    while (next < events->phases.n && events->phases.at[next].start <= event->time) {
      if (n_open == MOST_OPEN_PHASES)
        n_open--;
      open[n_open++] = &events->phases.at[next++];
    }
    n_open = KEEP_WHERE(open, n_open, one, (*one)->end == NS_UNKNOWN || (*one)->end > event->time);
    if (event->kind == MEMORY_ALLOC && n_open && open[n_open - 1]->kind < n_kinds)
      event->source = open[n_open - 1]->kind;
  }
}

/* "my/model.py:101 (forward)" */
static const char *describe_line(const struct memory_sources_of *of,
                                 const struct call_frame *frame) {
  return place_with_function(of->arena, call_frame_place(of->arena, frame, model_folder(of->model)),
                             frame->function ? last_name(frame->function) : NULL);
}

/* One line of the program may be several frames: one for each place in its code object. Sets
 * first[frame] to the first frame of the same file, function and line. */
static void find_first_frames(const struct call_sites *sites, u32 *first) {
  SCOPED struct hash_index index = {0};
  for (u32 i = 0; i < sites->n_frames; i++) {
    const struct call_frame *frame = &sites->frames[i];
    u64 hash = call_frame_hash(0, frame);
    first[i] = i;
    HASH_INDEX_EACH(&index, hash, k)
      first[i] = call_frame_is_same(&sites->frames[k], frame) ? k : first[i];
    if (first[i] == i)
      hash_index_add(&index, hash, i);
  }
}

static u32 line_of(const struct memory_sources_of *of, u32 event) {
  u32 stack = of->stacks[event];
  return stack == INDEX_NONE ? INDEX_NONE : call_stack_line(of->sites, &of->sites->stacks[stack]);
}

/* Sources so far are phases, one for each kind; one more is made for each line and phase. */
static void add_lines_to_sources(const struct memory_sources_of *of, u32 n_kinds) {
  struct memory_history *history = of->history;
  u32 n_frames = of->sites->n_frames;
  u32 *first = arena_array(of->scratch, n_frames, sizeof(*first));
  u32 *made = arena_array(of->scratch, size_product(n_frames, n_kinds), sizeof(*made));
  find_first_frames(of->sites, first);
  for (u32 i = 0; i < history->n_events; i++) {
    struct memory_event *event = &history->events[i];
    u32 line = event->kind == MEMORY_ALLOC ? line_of(of, i) : INDEX_NONE;
    if (line == INDEX_NONE || !of->sites->frames[line].file)
      continue;
    u32 *source = &made[(size_t)first[line] * n_kinds + event->source];
    if (!*source) {
      const char *place = describe_line(of, &of->sites->frames[line]);
      *source = history->n_sources;
      history->sources[history->n_sources++] = (struct memory_source){
          .place = place, .category = history->sources[event->source].category};
    }
    event->source = *source;
  }
}

/* How many events have a line: as many sources may be added, at most. */
static u32 count_lines(const struct memory_sources_of *of) {
  return NUMBER_OF(of->stacks, of->history->n_events, one, *one != INDEX_NONE);
}

/* Gives each allocation its position in the tree of all stacks. */
static void grow_tree(const struct memory_sources_of *of) {
  struct memory_history *history = of->history;
  const struct call_sites *sites = of->sites;
  struct memory_frames tree = {0};
  const char **names = arena_array(of->scratch, sites->n_frames, sizeof(*names));
  u32 *placed = arena_array(of->scratch, sites->n_stacks, sizeof(*placed));
  for (u32 i = 0; i < history->n_events; i++) {
    u32 index = of->stacks[i];
    if (history->events[i].kind != MEMORY_ALLOC || index == INDEX_NONE)
      continue;
    const struct call_stack *stack = &sites->stacks[index];
    for (u32 k = placed[index] ? 0 : stack->n; k-- > 0;) { /* innermost first */
      u32 frame = stack->frames[k];
      if (!sites->frames[frame].file)
        continue;
      if (!names[frame])
        names[frame] = describe_line(of, &sites->frames[frame]);
      placed[index] = memory_frames_find_or_add(&tree, placed[index], names[frame],
                                                call_frame_is_user_code(&sites->frames[frame]));
    }
    history->events[i].stack = placed[index];
  }
  memory_frames_finish(&tree, of->arena, history);
  memory_frames_free(&tree);
}

void memory_name_sources(const struct memory_sources_of *of) {
  static const enum allocation_category of_phase[] = {
#define X(NAME, value, text) [value] = ALLOCATION_##NAME,
      TSCOPE_PHASES(X)
#undef X
  };
  const u32 n_kinds = LENGTH_OF(of_phase);
  struct memory_history *history = of->history;
  size_t most = (size_t)of->sites->n_frames * n_kinds, lines = count_lines(of);
  history->sources =
      arena_array(of->arena, size_sum(n_kinds, MIN(lines, most)), sizeof(*history->sources));
  history->n_sources = n_kinds;
  for (u32 p = 1; p < n_kinds; p++)
    history->sources[p] = (struct memory_source){.place = NULL, .category = of_phase[p]};
  find_phases(of, n_kinds);
  add_lines_to_sources(of, n_kinds);
  grow_tree(of);
}
