/* SPDX-License-Identifier: MIT
 *
 * The line that makes a rank late: where it is for longer than its peers, in the last seconds. A
 * rank that others wait for is at its slow line while they are at the line where they wait, so the
 * time of all lines is compared, waits and work alike.
 *
 * On a busy machine looks are late, and stand for very different times. All of them tell as much as
 * so many that stand for the same time: (sum of times)^2 / sum of squares [Kish, 1965].
 */
#include <math.h>

#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/tscope/events/stacks_of_calls.h"
#include "live/live_view.h"

enum { PEERS_MOST = 16, LOOKS_LEAST = 20 };
#define WINDOW_NS 20000000000ll
#define ERRORS 3.0
/* A line is named if it explains more than the second one by so many standard errors. Where there
 * are so many looks that this is not by chance, both are slow, and the first is named. */
#define ERRORS_APART 2.0
#define LOOKS_ENOUGH (10 * LOOKS_LEAST)

struct line_time {
  struct call_frame frame;
  double ns;
};

/* Where a rank was. */
struct rank_lines {
  struct line_time *at;
  u32 n, seen;               /* seen: in so many looks */
  double ns, squares, looks; /* looks: as many as would tell as much */
};

ORDER_BY(by_place, struct line_time, UP(frame.line) BY_TEXT(frame.file) BY_TEXT(frame.function))

static u32 merge_lines(struct line_time *all, u32 n) {
  return SORT_AND_JOIN(all, n, by_place, sum, more, ADD_EACH(sum, more, ns));
}

/* Since when its steps are known, at most for a while: what it did before them is no matter. */
static i64 begin_of(const struct live_rank *rank) {
  double known_s = TOTAL(double, rank->steps.lengths, rank->steps.n, one, *one);
  i64 known_ns = (i64)(known_s * 1e9);
  return rank->steps.last - MIN(known_ns, WINDOW_NS);
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
    lines.seen++;
    lines.ns += (double)look->ns;
    lines.squares += (double)look->ns * (double)look->ns;
    struct line_time line = {.ns = (double)look->ns};
    if (stack_line(&process->definitions.now, look->stack, &view->arena, &line.frame))
      lines.at[lines.n++] = line;
  }
  lines.n = merge_lines(lines.at, lines.n);
  lines.looks = lines.squares > 0 ? lines.ns * lines.ns / lines.squares : 0;
  return lines;
}

/* Of its time. */
static double share_at(const struct rank_lines *lines, const struct line_time *line) {
  const struct line_time *found = FIND_SORTED(lines->at, lines->n, line, by_place);
  return found ? found->ns / lines->ns : 0;
}

static bool is_late(const struct live_view *view, const struct live_rank *rank) {
  return rank->late_s > WORTH_MENTIONING * view->step_s;
}

/* Some ranks that are not late, from all over the job. */
static u32 list_peers(struct live_view *view, struct rank_lines *peers) {
  u32 n = 0, stride = view->n_ranks / PEERS_MOST + 1;
  for (u32 i = 0; i < view->n_ranks && n < PEERS_MOST; i += stride) {
    if (is_late(view, &view->ranks[i]))
      continue;
    peers[n] = lines_of(view, &view->ranks[i]);
    n += peers[n].seen >= LOOKS_LEAST; /* a wait is seen in a few long looks */
  }
  return n;
}

static void say_too_few(struct live_view *view, struct live_rank *rank, double looks) {
  rank->late_why =
      arena_printf(&view->arena, "not known yet: %.0f of %u looks at the lines of this rank",
                   floor(looks), LOOKS_LEAST);
}

/* A line of a late rank: what is more of it there than at its peers, as a share of the time. */
struct excess {
  const struct line_time *line;
  double share, theirs, more;
};

static struct excess excess_at(const struct rank_lines *own, const struct line_time *line,
                               const struct rank_lines *peers, u32 n) {
  struct excess excess = {.line = line, .share = line->ns / own->ns};
  FOR_EACH(peers, n, peer)
    excess.theirs += share_at(peer, line) / n;
  excess.more = excess.share - excess.theirs;
  return excess;
}

static void find_most(const struct rank_lines *own, const struct rank_lines *peers, u32 n,
                      struct excess *most, struct excess *next) {
  FOR_EACH(own->at, own->n, line) {
    struct excess one = excess_at(own, line, peers, n);
    if (one.more > most->more) {
      *next = *most;
      *most = one;
    } else if (one.more > next->more) {
      *next = one;
    }
  }
}

/* The line must be seen more often than chance explains, and for most of what the rank is late. */
static const char *why_not(const struct live_view *view, const struct live_rank *rank,
                           const struct rank_lines *own, u32 peers, const struct excess *most,
                           const struct excess *next) {
  double error = sqrt((most->share + most->theirs / peers) / own->looks);
  if (!most->line || most->more < ERRORS * error ||
      most->more * view->step_s < REASON_SHARE * rank->late_s)
    return "not known: no one line takes longer than on its peers by half of that";
  double apart = sqrt((most->share + next->share) / own->looks);
  if (own->looks < LOOKS_ENOUGH && most->more - next->more < ERRORS_APART * apart)
    return "not known yet: two lines are seen nearly as often";
  return NULL;
}

static void find_line(struct live_view *view, struct live_rank *rank,
                      const struct rank_lines *peers, u32 n) {
  struct rank_lines own = lines_of(view, rank);
  struct excess most = {0}, next = {0};
  if (own.looks < LOOKS_LEAST) {
    say_too_few(view, rank, own.looks);
    return;
  }
  find_most(&own, peers, n, &most, &next);
  rank->late_why = why_not(view, rank, &own, n, &most, &next);
  if (rank->late_why)
    return;
  const struct call_frame *at = &most.line->frame;
  const char *folder = rank->process->definitions.now.info[TSCOPE_INFO_DIRECTORY];
  rank->late_more_s = most.more * view->step_s;
  rank->late_at =
      place_with_function(&view->arena, call_frame_place(&view->arena, at, folder), at->function);
}

void live_find_late_lines(struct live_view *view) {
  struct rank_lines peers[PEERS_MOST];
  u32 late = NUMBER_OF(view->ranks, view->n_ranks, one, is_late(view, one));
  u32 n = late && 2 * late <= view->n_ranks ? list_peers(view, peers) : 0;
  FOR_EACH_CHANGED(view->ranks, view->n_ranks, rank) {
    if (!is_late(view, rank))
      continue;
    if (n)
      find_line(view, rank, peers, n);
    else if (2 * late > view->n_ranks)
      rank->late_why = "not known: too few ranks are not late";
    else
      rank->late_why = "not known yet: too few looks at the lines of its peers";
  }
}
