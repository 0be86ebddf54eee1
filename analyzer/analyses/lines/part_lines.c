/* SPDX-License-Identifier: MIT
 *
 * A part of the program in words.
 */
#include <math.h>

#include "analyses/lines/line_sums.h"
#include "analyses/lines/lines.h"
#include "base/trace_words.h"

static const char *describe_path(struct analysis *a, const struct sampled_path *path) {
  const char *text = NULL;
  for (u32 i = path->n; i-- > 0;) {
    const struct call_frame *frame = &path->frames[i];
    text = arena_list(a->arena, text, " > ", "%s",
                      line_place(a, frame->file, frame->line, frame->function));
  }
  return text;
}

static const char *known_activity(u32 activity) {
  return activity != TSCOPE_ACTIVITY_UNKNOWN ? activity_word(activity) : NULL;
}

/* Whether the thread mostly waits in one of these ways, but for what it is without a core: on a
 * busy machine that follows every wait. */
static bool mostly(const struct sampled_part *part, u32 ways) {
  i64 waits = 0, all = 0;
  for (u32 i = 0; i < ACTIVITIES; i++) {
    waits += ways >> i & 1 ? part->activity_ns[i] : 0;
    all += i != TSCOPE_ACTIVITY_NO_CORE ? part->activity_ns[i] : 0;
  }
  return 2 * waits > all;
}

/* For another thread or a process. */
static bool most_waits(const struct sampled_part *part) {
  return mostly(part, 1u << TSCOPE_ACTIVITY_LOCK | 1u << TSCOPE_ACTIVITY_PIPE |
                          1u << TSCOPE_ACTIVITY_EVENTS | 1u << TSCOPE_ACTIVITY_NETWORK);
}

void line_set_beside(struct analysis *a, const struct sampled_part *part,
                     const struct sampled_part *beside, struct sampled_line *line) {
  if (!beside || !mostly(part, 1u << TSCOPE_ACTIVITY_LOCK | 1u << TSCOPE_ACTIVITY_GIL))
    return;
  const char *place = line_place(a, beside->file, beside->line, beside->function);
  i64 all = TOTAL(i64, beside->activity_ns, ACTIVITIES, one, *one);
  line->beside_has_gil = 2 * beside->gil_ns > all;
  line->beside = say(a, "%s%s", place_with_function(a->arena, place, beside->function),
                     line->beside_has_gil ? ", with the GIL" : "");
}

/* What the thread does there for most of the time. */
static void set_activity(const struct sampled_part *part, struct sampled_line *line) {
  i64 all = TOTAL(i64, part->activity_ns, ACTIVITIES, one, *one);
  const i64 *most = LARGEST(part->activity_ns, ACTIVITIES, one, true, (double)*one);
  line->activity = known_activity((u32)(most - part->activity_ns));
  line->waits = most_waits(part);
  line->activity_share = all ? (double)*most / (double)all : NAN;
  line->compiling_share = all ? (double)part->compiling_ns / (double)all : NAN;
  line->no_core_share = no_core_share(part);
}

void line_set_path(struct analysis *a, const struct sampled_part *part,
                   const struct sampled_path *path, struct sampled_line *line) {
  line->path = path ? describe_path(a, path) : NULL;
  line->called_elsewhere = part->n_paths > 1;
}

struct sampled_line *line_of_function(struct analysis *a, const struct call_frame *frame) {
  u32 begin = frame->first_line ? frame->first_line : frame->line;
  return line_of_part(
      a, &(struct sampled_part){.kind = OWN_FUNCTION, .line = begin, SAME(frame, file, function)});
}

struct sampled_line *line_of_part(struct analysis *a, const struct sampled_part *part) {
  struct sampled_line *line = arena_alloc(a->arena, sizeof(*line));
  *line =
      (struct sampled_line){.in_workers = part->kind == WORKER_LINE,
                            .no_core_share = NAN,
                            .compiling_share = NAN,
                            .is_line = part->kind != OWN_FUNCTION && part->kind != OWN_ACTIVITY};
  if (part->kind == OWN_ACTIVITY) {
    line->place = line->where = known_activity(part->line);
    return line;
  }
  line->place = line_place(a, part->file, part->line, part->function);
  line->function = arena_text(a->arena, part->function);
  line->path = part->n_paths ? describe_path(a, part->paths) : NULL;
  line->where = line->is_line ? say(a, "at %s", line->place)
                              : say(a, "in %s() (%s)", part->function, line->place);
  set_activity(part, line);
  return line;
}
