/* SPDX-License-Identifier: MIT
 *
 * Who ended the run.
 */
#include <signal.h>
#include <string.h>

#include "analyses/outcome/outcome.h"
#include "base/rank_list.h"
#include "kernels/communication.h"

/* Ranks that end for their own reasons within this time of the first did so independently; later
 * ones count only if they raised the signal themselves. */
#define TOGETHER_NS (1000 * 1000 * 1000ll)
/* Traces without a word that stop within this time of each other stopped together. */
#define SIMULTANEOUS_NS (200 * 1000 * 1000ll)
/* A wait this long is no chance. */
#define AWAITED_NS (2 * 1000 * 1000 * 1000ll)

/* Marks those endings of which it is true, and no others; how many. */
#define MARK_WHERE(o, one, that)                                                                   \
  ({                                                                                               \
    u32 marked_ = 0;                                                                               \
    FOR_EACH((o)->endings, (o)->n, one)                                                            \
      marked_ += (o)->culprit[one - (o)->endings] = (that);                                        \
    marked_;                                                                                       \
  })

static u32 unmark_all(struct outcome *o) {
  memset(o->culprit, 0, o->n);
  return 0;
}

u32 count_endings(const struct outcome *o, enum ending_class what) {
  return NUMBER_OF(o->endings, o->n, one, one->what == what);
}

bool is_odd(const struct outcome *o, u32 rank) {
  return ranks_have(o->counts.odd, o->counts.n_odd, rank);
}

/* Whether a rank is the other end of a message, which did not come. */
static bool is_absent_end(const struct model *model, const struct collective *message, u32 rank) {
  const struct comm *comm = &model->comms[message->comm];
  return rank != INDEX_NONE && message->n_arrivals == 1 && message->root >= 0 &&
         (u32)message->root < comm->size && comm->members[message->root] == rank;
}

/* Whether a rank made a collective that the other one never came to, or a message for it: there it
 * waited for that one, and what it raised in the end tells of the loss, whatever its words. */
static bool waited_for(const struct model *model, const struct ending *ending,
                       const struct ending *other) {
  const struct arrival *last = ending->last, *before = other->last_of_all;
  if (!last || last->collective == INDEX_NONE)
    return false;
  const struct collective *its = &model->collectives[last->collective];
  if (op_is_message(last->op))
    return is_absent_end(model, its, other->rank);
  if (!before || before->collective == INDEX_NONE)
    return false;
  const struct collective *others = &model->collectives[before->collective];
  return its->comm == others->comm && its->seq > others->seq;
}

/* Whether one that ended for its own reason did so because of `first`: it waited for it, or it
 * waited for others, and ended in the way in which waiting for lost ranks ends. */
static bool was_consequence(const struct outcome *o, const struct ending *ending,
                            const struct ending *first) {
  bool exception = ending->cause == END_EXCEPTION;
  if (o->ordered && ending->from - first->at > TOGETHER_NS)
    return true;
  return (exception && waited_for(o->a->model, ending, first)) ||
         (o->ordered && ending->from > first->at && ending->pending && !exception);
}

/* Of those that ended together for their own reasons, the first that did not wait for another. */
static const struct ending *find_first_own(const struct outcome *o) {
  const struct ending *first = NULL;
  FOR_EACH(o->endings, o->n, ending) {
    if (ending->what != ENDING_OWN)
      continue;
    if (!first || ((ending->from - first->from <= TOGETHER_NS || !o->ordered) &&
                   was_consequence(o, first, ending)))
      first = ending;
  }
  return first;
}

/* Whether it raised an exception of its own when the first ended, or before, and called nothing
 * more: its interpreter was still ending when the launcher stopped it. */
static bool raised_beside(const struct outcome *o, const struct ending *ending,
                          const struct ending *first) {
  if (ending->what != ENDING_STOPPED || ending->cause != END_EXCEPTION || !o->ordered || !first ||
      !ending->last || ending->pending || waited_for(o->a->model, ending, first))
    return false;
  i64 raised = o->a->model->ranks[ending->rank].ending.exception_at;
  return ending->last->call_start <= raised && raised - first->at <= TOGETHER_NS;
}

static u32 mark_own_reasons(struct outcome *o) {
  const struct ending *first = find_first_own(o);
  return MARK_WHERE(
      o, ending,
      (ending->what == ENDING_OWN && (ending == first || !was_consequence(o, ending, first))) ||
          raised_beside(o, ending, first));
}

/* Clocks that are not aligned put no deaths in order: those that all others outlived for certain.
 */
static u32 mark_outlived(struct outcome *o) {
  const struct ending **of = arena_array(o->a->arena, o->a->model->n_ranks, sizeof(*of));
  FOR_EACH(o->endings, o->n, ending)
    if (ending->rank != INDEX_NONE)
      of[ending->rank] = ending;
  const bool *first = outlived_first(o->a, of, SIMULTANEOUS_NS);
  return first ? MARK_WHERE(o, ending, ending->rank != INDEX_NONE && first[ending->rank]) : 0;
}

/* Else all that stopped without a word, if others reported that they lost a peer. */
static u32 mark_all_silent(struct outcome *o) {
  bool told = count_endings(o, ENDING_LOST_PEER) > 0;
  return MARK_WHERE(o, ending, told && ending->what == ENDING_SILENT);
}

bool was_paused(const struct ending *ending) {
  return ending->what == ENDING_SILENT && ending->cause == END_STOPPED;
}

/* A host that has no memory left lets no process run for long, until one of them is ended for it.
 */
static bool any_told_reason(const struct outcome *o) {
  return ANY(o->endings, o->n, one, one->what == ENDING_OWN && one->cause != END_SIGNAL);
}

/* The rank that somebody stopped first, when no rank had called anything for long; NULL. */
static const struct ending *stop_of_a_hang(const struct outcome *o) {
  const struct ending *stop = FIND(o->endings, o->n, one, one->what == ENDING_STOPPED);
  return stop && !ANY(o->endings, o->n, one,
                      one->last && stop->from - one->last->call_start < AWAITED_NS)
             ? stop
             : NULL;
}

bool lived_to_the_stop(const struct outcome *o, const struct ending *ending) {
  const struct ending *stop = o->ordered ? stop_of_a_hang(o) : NULL;
  return stop && ending->what == ENDING_SILENT && !was_paused(ending) &&
         ending->from >= stop->from - SIMULTANEOUS_NS;
}

/* Whether its last call is one that another rank made in another way: that may end any of them. */
static bool met_odd_call(const struct outcome *o, const struct ending *ending) {
  const struct arrival *last = ending->last;
  return o->counts.n_odd && !is_odd(o, ending->rank) && last && last->collective != INDEX_NONE &&
         o->a->model->collectives[last->collective].mismatched;
}

/* One whose trace stops is a victim if it wrote that it lost another, met the call of an odd one,
 * or waited for one that had ended normally; or if a peer had lost another while this one still
 * lived.
 */
static bool is_victim(const struct outcome *o, const struct ending *ending) {
  return ending->said_lost || met_odd_call(o, ending) ||
         ANY(o->endings, o->n, other,
             (other->what == ENDING_IN_ORDER && waited_for(o->a->model, ending, other)) ||
                 (other->what == ENDING_LOST_PEER && ending->from - other->from > SIMULTANEOUS_NS));
}

static bool any_lost(const struct outcome *o, const struct ending *to) {
  return count_endings(o, ENDING_LOST_PEER) > 0 ||
         ANY(o->endings, o->n, one, one->said_lost && waited_for(o->a->model, one, to));
}

/* Whether one of its peers shows that it ended first: by a loss, or since it waited for it. A
 * machine that is busy may end those that are killed together up to a second after each other, and
 * then they show nothing. */
static bool others_outlived(const struct outcome *o, const struct ending *first, i64 last) {
  bool waited = ANY(o->endings, o->n, one, waited_for(o->a->model, one, first)),
       silent = count_endings(o, ENDING_SILENT) == o->n;
  return any_lost(o, first) ||
         last - first->at >= (silent && !waited ? TOGETHER_NS : SIMULTANEOUS_NS);
}

/* If all ranks of its host stopped together without a word, and not those of the other hosts, the
 * host was lost: nobody on it only followed, though one may have waited for the other. */
static bool is_on_lost_host(const struct outcome *o, const struct ending *first) {
  bool others = false;
  FOR_EACH(o->endings, o->n, ending) {
    bool together = ending->what == ENDING_SILENT && !was_paused(ending) &&
                    ending->at - first->at <= SIMULTANEOUS_NS &&
                    first->at - ending->at <= SIMULTANEOUS_NS;
    if (ending->rank == INDEX_NONE)
      continue;
    if (!model_same_host(o->a->model, ending->rank, first->rank))
      others |= !together;
    else if (!together)
      return false;
  }
  return others;
}

/* The first of those that stopped without a word, if others lived on or reported that they lost a
 * peer. */
static u32 mark_silent(struct outcome *o, i64 before) {
  const struct ending *first = NULL;
  i64 last = INT64_MIN;
  bool told = any_told_reason(o);
  FOR_EACH(o->endings, o->n, ending) {
    last = ending->at > last && ending->what != ENDING_NONE && ending->what != ENDING_OLDER
               ? ending->at
               : last;
    if (ending->what != ENDING_SILENT || (was_paused(ending) && told) || is_victim(o, ending) ||
        lived_to_the_stop(o, ending))
      continue;
    if (!first ||
        (ending->at - first->at <= SIMULTANEOUS_NS && waited_for(o->a->model, first, ending)))
      first = ending;
  }
  if (!first || first->at >= before || !others_outlived(o, first, last))
    return 0;
  bool host = is_on_lost_host(o, first);
  return MARK_WHERE(o, ending,
                    ending->what == ENDING_SILENT && ending->at - first->at <= SIMULTANEOUS_NS &&
                        ((host && model_same_host(o->a->model, ending->rank, first->rank)) ||
                         !(is_victim(o, ending) || waited_for(o->a->model, ending, first))));
}

/* Nobody ended for its own reason, and some lost a peer or were stopped: who called fewer
 * collectives than most, or more. */
static u32 mark_odd(struct outcome *o) {
  u32 marked = MARK_WHERE(o, ending, ending->rank != INDEX_NONE && is_odd(o, ending->rank));
  return 2 * marked < o->n ? marked : unmark_all(o);
}

/* Whether all others had waited for the marked ranks long before somebody stopped these: the job
 * stood still then, and the stop only ended it. */
static bool stood_still_before(const struct outcome *o) {
  u32 others = 0;
  for (u32 i = 0; i < o->n; i++) {
    const struct ending *ending = &o->endings[i];
    if (o->culprit[i] || ending->rank == INDEX_NONE)
      continue;
    others++;
    for (u32 k = 0; k < o->n; k++)
      if (o->culprit[k] && !(waited_for(o->a->model, ending, &o->endings[k]) &&
                             o->endings[k].from - ending->last->call_start >= AWAITED_NS))
        return false;
  }
  return others > 0;
}

/* By a signal, but not by that of a terminal, which comes to all: who waits in a library that does
 * not look for it notices only that its peers are gone. */
static bool was_stopped_alone(const struct outcome *o, const struct ending *ending) {
  return ending->what == ENDING_STOPPED && ending->rank != INDEX_NONE &&
         !was_interrupted(&o->a->model->ranks[ending->rank].ending);
}

/* Those that somebody stopped while the others went on, and then waited for them. If the others end
 * soon, or had to be killed, somebody may have stopped them all; but not if all others say that
 * they lost a peer then. */
static u32 mark_stopped_first(struct outcome *o) {
  const struct ending *first =
      LARGEST(o->endings, o->n, one, was_stopped_alone(o, one), -(double)one->at);
  i64 next = INT64_MAX;
  bool all_lost = true;
  if (!first || !o->ordered || ANY(o->endings, o->n, one, one->killed_late))
    return 0;
  u32 marked = MARK_WHERE(
      o, ending, was_stopped_alone(o, ending) && ending->at - first->at <= SIMULTANEOUS_NS);
  for (u32 i = 0; i < o->n; i++) {
    const struct ending *ending = &o->endings[i];
    if (o->culprit[i])
      continue;
    all_lost &= ending->what == ENDING_LOST_PEER && ending->from >= first->from;
    next = MIN(ending->at, next);
  }
  bool waited = next < INT64_MAX && (all_lost || next - first->at > 2 * SIMULTANEOUS_NS);
  for (u32 i = 0; i < o->n && waited; i++)
    for (u32 k = 0; k < o->n && !o->culprit[i]; k++)
      waited &= !o->culprit[k] || o->endings[i].what == ENDING_LOST_PEER ||
                waited_for(o->a->model, &o->endings[i], &o->endings[k]);
  o->stopped_first = waited && marked && !stood_still_before(o);
  return waited ? marked : unmark_all(o);
}

/* How long a rank that gave up had waited for another one, until this one began to end: for a
 * collective that it never came to, or only after that time. */
static i64 awaited_ns(const struct model *model, const struct ending *waiting,
                      const struct ending *other) {
  const struct arrival *its = waiting->last, *others = other->last;
  if (waited_for(model, waiting, other))
    return MIN(waiting->from, other->from) - its->call_start;
  bool same =
      its && others && its->collective != INDEX_NONE && its->collective == others->collective;
  return same ? others->call_start - its->call_start : 0;
}

/* Whether it lost a peer; or was stopped with all others when its last call had run for long. After
 * an interrupt, such a call ends when a peer's connections close, and Python then tells of the
 * interrupt; or it never ends, and the launcher kills the process. */
static bool gave_up(const struct outcome *o, const struct ending *ending) {
  const struct arrival *last = ending->last;
  bool with_others =
      ending->what == ENDING_STOPPED &&
      (ending->killed_late || was_interrupted(&o->a->model->ranks[ending->rank].ending));
  if (!with_others || !last)
    return ending->what == ENDING_LOST_PEER;
  i64 end = arrival_left(last);
  return (end == NS_UNKNOWN ? ending->from : end) - last->call_start >= AWAITED_NS;
}

/* Whether all others that gave up, and there are some, had waited for it for long. */
static bool was_awaited(const struct outcome *o, const struct ending *ending) {
  u32 others = 0;
  FOR_EACH(o->endings, o->n, other) {
    if (other == ending || !gave_up(o, other))
      continue;
    others++;
    if (awaited_ns(o->a->model, other, ending) < AWAITED_NS)
      return false;
  }
  return others && ending->rank != INDEX_NONE;
}

/* Whether it only passed on that it waited itself for another of those that others waited for. */
static bool passed_on(const struct outcome *o, const struct ending *ending, const bool *awaited) {
  return ANY(o->endings, o->n, other,
             awaited[other - o->endings] && waited_for(o->a->model, ending, other) &&
                 !waited_for(o->a->model, other, ending));
}

/* Those for which all that gave up had waited for long. */
static u32 mark_awaited(struct outcome *o) {
  bool *awaited = arena_array(o->a->arena, o->n, sizeof(*awaited));
  for (u32 i = 0; i < o->n; i++)
    awaited[i] = o->ordered && was_awaited(o, &o->endings[i]);
  u32 marked =
      MARK_WHERE(o, ending, awaited[ending - o->endings] && !passed_on(o, ending, awaited));
  return 2 * marked <= o->n ? marked : unmark_all(o);
}

/* Whether somebody stopped it when others had waited for it, but not for long: as in any job that
 * is stopped at work, where some ranks are a call ahead. */
static bool was_awaited_briefly(const struct outcome *o, const struct ending *ending) {
  i64 longest = -1;
  if (ending->what != ENDING_STOPPED || !o->ordered)
    return false;
  FOR_EACH(o->endings, o->n, other)
    if (waited_for(o->a->model, other, ending) && ending->from - other->last->call_start > longest)
      longest = ending->from - other->last->call_start;
  return longest >= 0 && longest < AWAITED_NS;
}

/* The job hung until somebody stopped it: the verdict about its calls says who held it up. */
static u32 mark_suspects(struct outcome *o) {
  const struct collective_check *check = &o->a->results->check;
  return MARK_WHERE(o, ending,
                    ANY(check->suspects, check->n_suspects, one, one->rank == ending->global) &&
                        !was_awaited_briefly(o, ending));
}

/* Those that ended normally while the others still waited for them. */
static u32 mark_early_leavers(struct outcome *o) {
  return MARK_WHERE(o, ending, ending->what == ENDING_IN_ORDER);
}

/* Whether it stood still when it was ended by force, and waited for what others do. */
static bool stood_waiting(const struct outcome *o, const struct ending *ending) {
  const struct stalls_result *stalls = &o->a->results->stalls;
  return ANY(stalls->ranks, stalls->n_ranks, one,
             one->rank == ending->global && one->awaits_others);
}

/* Those that ended normally while all others waited until they were ended by force: in a call
 * behind the last that these made, or for something that is no call, such as a key of the store. */
static u32 mark_missed(struct outcome *o) {
  bool forced = count_endings(o, ENDING_SILENT) + count_endings(o, ENDING_STOPPED) > 0;
  return MARK_WHERE(
      o, leaver,
      forced && leaver->what == ENDING_IN_ORDER &&
          ALL(o->endings, o->n, other,
              other->what == ENDING_IN_ORDER ||
                  ((other->what == ENDING_SILENT || other->what == ENDING_STOPPED) &&
                   (waited_for(o->a->model, other, leaver) ||
                    (o->ordered && leaver->at < other->from && stood_waiting(o, other))))));
}

/* Whether it was stopped, or its trace stops, long after an exception of its own, and it had called
 * nothing since (causes.c). */
static bool stopped_long_after_exception(const struct outcome *o, const struct ending *ending) {
  return (ending->what == ENDING_STOPPED || ending->what == ENDING_SILENT) &&
         ending->cause == END_EXCEPTION && ending->last &&
         ending->at - o->a->model->ranks[ending->rank].ending.exception_at >= AWAITED_NS;
}

/* Those that stood still after an exception, if all others wait for somebody. */
static u32 mark_stood_still(struct outcome *o) {
  u32 marked = MARK_WHERE(o, ending, stopped_long_after_exception(o, ending));
  bool all = ALL(o->endings, o->n, one,
                 o->culprit[one - o->endings] || one->pending || one->said_lost ||
                     one->what == ENDING_LOST_PEER);
  return all ? marked : unmark_all(o);
}

bool only_aborts(const struct outcome *o) {
  return count_endings(o, ENDING_OWN) > 0 &&
         ALL(o->endings, o->n, one,
             one->what != ENDING_OWN || o->a->model->ranks[one->rank].ending.signal == SIGABRT);
}

bool only_followed(const struct outcome *o, const struct ending *ending) {
  bool unsaid = ending->what == ENDING_OWN || ending->what == ENDING_SILENT ||
                ending->what == ENDING_OLDER || ending->what == ENDING_NONE;
  return !unsaid || ending->pending || ending->said_lost ||
         (ending->what != ENDING_OWN && is_victim(o, ending)) ||
         ANY(o->endings, o->n, one,
             o->culprit[one - o->endings] && waited_for(o->a->model, ending, one));
}

/* The first rank that stopped without a word, before all that ended for their own reasons, ended
 * the run; else these did. */
u32 mark_culprits(struct outcome *o) {
  const struct ending *own = FIND(o->endings, o->n, one, one->what == ENDING_OWN);
  u32 marked = o->ordered ? mark_silent(o, own ? own->from : INT64_MAX) : mark_outlived(o);
  if (!marked && !o->ordered && !own)
    marked = mark_all_silent(o);
  if (!marked && only_aborts(o))
    marked = mark_odd(o);
  if (!marked)
    marked = mark_own_reasons(o);
  if (!marked && (count_endings(o, ENDING_LOST_PEER) || count_endings(o, ENDING_STOPPED))) {
    marked = mark_odd(o);
    if (!marked)
      marked = mark_stopped_first(o);
    if (!marked)
      marked = mark_suspects(o);
    if (!marked)
      marked = mark_awaited(o);
    if (!marked && count_endings(o, ENDING_LOST_PEER))
      marked = mark_early_leavers(o);
  }
  if (!marked)
    marked = mark_missed(o);
  return marked ? marked : mark_stood_still(o);
}
