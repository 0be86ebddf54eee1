/* SPDX-License-Identifier: MIT
 *
 * The line that makes a rank late: where it is for longer than its peers, in the last seconds. A
 * rank that others wait for is at its slow line while they are at the line where they wait, so the
 * time of all lines is compared, waits and work alike.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/events/stacks_of_calls.h"
#include "live/live_view.h"

enum { PEERS_MOST = 16, LOOKS_LEAST = 20 };
#define WINDOW_NS 20000000000ll
#define LATE_SHARE 0.05     /* of a step, from which on a rank is late */
#define EXPLAINED_SHARE 0.5 /* of the delay, which the line must explain */
#define ERRORS 3.0

struct line_time {
  struct call_frame frame;
  double ns;
  u32 looks;
};

/* Where a rank was. */
struct rank_lines {
  struct line_time *at;
  u32 n, looks;
  double ns;
};

ORDER_BY(by_place, struct line_time, UP(frame.line) BY_TEXT(frame.file))

static u32 merge_lines(struct line_time *all, u32 n) {
  return SORT_AND_JOIN(all, n, by_place, sum, more, ADD_EACH(sum, more, ns, looks));
}

/* Since when its steps are known, at most for a while: what it did before them is no matter. */
static i64 begin_of(const struct live_rank *rank) {
  double known_s = TOTAL(double, rank->steps.lengths, rank->steps.n, one, *one);
  i64 known_ns = (i64)(known_s * 1e9);
  return rank->steps.last - (known_ns < WINDOW_NS ? known_ns : WINDOW_NS);
}

/* Looks again when there are a quarter more stacks. */
static void find_library(struct followed_definitions *definitions) {
  if (4 * (u64)definitions->now.n_stacks <= 5 * (u64)definitions->stacks_known)
    return;
  definitions->stacks_known = definitions->now.n_stacks;
  definitions_find_library(&definitions->now);
}

static struct rank_lines lines_of(struct live_view *view, const struct live_rank *rank) {
  struct live_process *process = rank->process;
  find_library(&process->definitions);
  const struct live_looks *looks = &process->looks;
  u32 kept = looks->n < LIVE_LOOKS ? (u32)looks->n : LIVE_LOOKS;
  struct rank_lines lines = {.at = arena_array(&view->arena, kept, sizeof(*lines.at))};
  i64 from = begin_of(rank);
  FOR_EACH(looks->at, kept, look) {
    if (!rank->steps.n || look->at < from)
      continue;
    lines.ns += (double)look->ns;
    lines.looks++;
    struct line_time line = {.ns = (double)look->ns, .looks = 1};
    if (stack_own_frame(&process->definitions.now, look->stack, &line.frame))
      lines.at[lines.n++] = line;
  }
  lines.n = merge_lines(lines.at, lines.n);
  return lines;
}

/* Of its time. */
static double share_at(const struct rank_lines *lines, const struct line_time *line) {
  const struct line_time *found = FIND_SORTED(lines->at, lines->n, line, by_place);
  return found ? found->ns / lines->ns : 0;
}

static bool is_late(const struct live_view *view, const struct live_rank *rank) {
  return rank->late_s > LATE_SHARE * view->step_s;
}

/* Some ranks that are not late, from all over the job. */
static u32 list_peers(struct live_view *view, struct rank_lines *peers) {
  u32 n = 0, stride = view->n_ranks / PEERS_MOST + 1;
  for (u32 i = 0; i < view->n_ranks && n < PEERS_MOST; i += stride) {
    if (is_late(view, &view->ranks[i]))
      continue;
    peers[n] = lines_of(view, &view->ranks[i]);
    n += peers[n].looks >= LOOKS_LEAST;
  }
  return n;
}

static void say_too_few(struct live_view *view, struct live_rank *rank, u32 looks, const char *of) {
  rank->late_why = arena_printf(&view->arena, "not known yet: %u of %u looks at the lines of %s",
                                looks, LOOKS_LEAST, of);
}

/* The line must be seen more often than chance explains, and for most of what the rank is late. */
static void find_line(struct live_view *view, struct live_rank *rank,
                      const struct rank_lines *peers, u32 n) {
  struct rank_lines own = lines_of(view, rank);
  const struct line_time *best = NULL;
  if (own.looks < LOOKS_LEAST) {
    say_too_few(view, rank, own.looks, "this rank");
    return;
  }
  FOR_EACH(own.at, own.n, line) {
    double share = line->ns / own.ns, theirs = 0;
    for (u32 p = 0; p < n; p++)
      theirs += share_at(&peers[p], line) / n;
    double more_s = (share - theirs) * view->step_s;
    double error_s = view->step_s * sqrt((share + theirs / n) / own.looks);
    if (more_s < ERRORS * error_s || more_s < EXPLAINED_SHARE * rank->late_s ||
        (best && more_s <= rank->late_more_s))
      continue;
    best = line;
    rank->late_more_s = more_s;
  }
  if (!best) {
    rank->late_why = "not known: no one line takes longer than on its peers by half of that";
    return;
  }
  char place[512];
  call_frame_write_place(&best->frame, place, sizeof(place));
  rank->late_at = arena_printf(&view->arena, "%s (%s)", place,
                               best->frame.function ? best->frame.function : "?");
}

void live_find_late_lines(struct live_view *view) {
  struct rank_lines peers[PEERS_MOST];
  u32 late = NUMBER_OF(view->ranks, view->n_ranks, one, is_late(view, one));
  u32 n = late && 2 * late <= view->n_ranks ? list_peers(view, peers) : 0;
  for (u32 i = 0; i < view->n_ranks; i++) {
    if (!is_late(view, &view->ranks[i]))
      continue;
    if (n)
      find_line(view, &view->ranks[i], peers, n);
    else if (2 * late > view->n_ranks)
      view->ranks[i].late_why = "not known: too few ranks are not late";
    else
      view->ranks[i].late_why = "not known yet: too few looks at the lines of its peers";
  }
}
