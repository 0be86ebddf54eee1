/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "analyses/outcome/outcome.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/texts.h"
#include "model/flight_record.h"

/* " Ranks 0, 2 only followed. Of rank 3 it is not known whether it followed." */
static char *words_of_others(const struct outcome *o) {
  u32 *ranks = arena_array(o->a->arena, o->n, sizeof(*ranks));
  u32 n = LIST_WHERE(ranks, 0, o->n, i, !o->culprit[i] && only_followed(o, &o->endings[i]),
                     o->endings[i].global);
  char *followed = n ? say(o->a, " %s only followed.", ranks_first_in(o->a->arena, ranks, n))
                     : arena_text(o->a->arena, "");
  n = LIST_WHERE(ranks, 0, o->n, i, !o->culprit[i] && !only_followed(o, &o->endings[i]),
                 o->endings[i].global);
  return n ? say(o->a, "%s Of %s it is not known whether %s followed.", followed,
                 ranks_in(o->a->arena, ranks, n), n == 1 ? "it" : "they")
           : followed;
}

char *words_of_last_call(const struct analysis *a, const struct ending *ending) {
  const struct arrival *last = ending->last;
  const struct model *model = a->model;
  const char *op = op_name(last->op);
  if (last->collective == INDEX_NONE)
    return arena_text(a->arena, op);
  const struct collective *collective = &model->collectives[last->collective];
  const struct comm *comm = &model->comms[collective->comm];
  return call_name(a->arena, op, collective->seq,
                   comm_label(comm->name, comm->identity, comm->size, a->arena));
}

static char *describe_place(const struct analysis *a, const struct rank_ending *row) {
  char *step = isnan(row->step) ? arena_text(a->arena, "") : say(a, " in step %.0f", row->step);
  return row->call ? say(a, "%s, %s %s", step, row->pending == ANSWER_YES ? "waiting in" : "after",
                         row->call)
                   : step;
}

static const struct rank_ending *row_of(const struct run_end *end, const struct ending *ending) {
  return FIND(end->ranks, end->n_ranks, one, one->rank == ending->global);
}

/* Why a culprit ended. A sample from before an exception is not where it was raised, and one from
 * the end of the interpreter says nothing of why it fails. */
static char *words_of_cause(const struct outcome *o, const struct run_end *end,
                            const struct ending *culprit) {
  const struct rank_ending *row = row_of(end, culprit);
  bool left = culprit->what == ENDING_IN_ORDER || row->how != RANK_END_EXIT;
  return row->last_seen && left && culprit->cause != END_EXCEPTION
             ? say(o->a, "%s, %s at %s", culprit->why, row->ends_there ? "called" : "last seen",
                   row->last_seen)
             : arena_text(o->a->arena, culprit->why);
}

enum { CAUSES_TOLD = 3 };

/* The same of all: of each with its rank, where they ended for different reasons. */
static char *words_of_causes(const struct outcome *o, const struct run_end *end) {
  const struct ending *first = first_culprit(o);
  char *text = NULL;
  u32 told = 0;
  if (!ANY(o->endings, o->n, one, o->culprit[one - o->endings] && !same_text(one->why, first->why)))
    return words_of_cause(o, end, first);
  for (u32 i = 0; i < o->n && told < CAUSES_TOLD; i++) {
    if (!o->culprit[i])
      continue;
    text = arena_list(o->a->arena, text, "; ", "rank %u: %s", o->endings[i].global,
                      words_of_cause(o, end, &o->endings[i]));
    told++;
  }
  return text;
}

char *words_of_end(const struct outcome *o, const struct run_end *end) {
  struct arena *arena = o->a->arena;
  const struct ending *first = first_culprit(o);
  if (!first)
    return NULL;
  char *who = ranks_first_in(arena, end->culprits, end->n_culprits);
  char *where = describe_place(o->a, row_of(end, first));
  char *when = isnan(end->ahead_s) || end->n_culprits == o->n
                   ? arena_text(arena, "")
                   : arena_printf(arena, ", %s before the next", duration_s(end->ahead_s).text);
  const char *host = find_lost_host(o);
  char *why = host ? arena_printf(arena, "all ranks of host %s fell silent", host)
                   : words_of_causes(o, end);
  const char *how = was_paused(first)       ? " held up the job"
                    : end->held_up          ? " held up the job until it was stopped"
                    : ended_first(o, first) ? " ended first"
                                            : " ended the run";
  return arena_printf(arena, "%s%s%s%s: %s.%s", who, how, where, when, why, words_of_others(o));
}

char *words_of_unknown_end(const struct outcome *o) {
  const struct ending *next = FIND(o->endings, o->n, one, one->what != ENDING_IN_ORDER);
  size_t left = next ? (size_t)(next - o->endings) : 0;
  if (!left || !o->ordered || next->what == ENDING_NONE)
    return say(o->a, "It did not end normally; which rank ended first is not known.");
  u32 *ranks = arena_array(o->a->arena, left, sizeof(*ranks));
  for (size_t i = 0; i < left; i++)
    ranks[i] = o->endings[i].global;
  return say(o->a,
             "It did not end normally. %s had ended normally %s before the next; whether the "
             "others waited for that is not known.",
             ranks_first_in(o->a->arena, ranks, (u32)left),
             duration_s(ns_to_s(next->from - next[-1].at)).text);
}

static const char *wait(u32 n) {
  return n == 1 ? "waits" : "wait";
}

/* Has not made the call in which others wait. */
static char *words_of_absent(struct arena *arena, u32 rank, const struct suspect_facts *f) {
  char *last =
      f->last_called == SEQ_UNKNOWN
          ? arena_text(arena, "")
          : arena_printf(arena, " The last it called there is %lld.", (long long)f->last_called);
  return arena_printf(arena,
                      "Rank %u has not called %s, in which %s %s; it is in no other call either.%s",
                      rank, f->call, f->others, wait(f->n_others), last);
}

static char *words_of_order(struct arena *arena, u32 rank, const struct suspect_facts *f) {
  if (f->detail)
    return arena_printf(arena, "Rank %u %s.", rank, f->detail);
  if (f->before)
    return arena_printf(
        arena, "Rank %u calls %s before %s; %u of %u ranks do so.%s", rank, f->call, f->before,
        f->some, f->all,
        f->two_threads
            ? " Two threads make these calls, and nothing keeps their order the same on all ranks."
            : "");
  if (f->call)
    return arena_printf(arena, "Rank %u waits in %s for %s, which in turn %s for it.", rank,
                        f->call, f->others, wait(f->n_others));
  return arena_printf(arena, "Rank %u is in a circle of ranks that wait for each other.", rank);
}

static char *as_sentence(struct arena *arena, const char *words) {
  size_t n = strlen(words);
  return arena_printf(arena, "%s%s", words, n && words[n - 1] == '.' ? "" : ".");
}

static char *words_of_reason(struct arena *arena, const struct check_suspect *suspect) {
  const struct suspect_facts *f = &suspect->facts;
  u32 rank = suspect->rank;
  switch (suspect->reason) {
  case SUSPECT_SILENT:
    return arena_printf(arena,
                        "Rank %u called %s and the record does not show its end; %s %s in it.",
                        rank, f->call, f->others, wait(f->n_others));
  case SUSPECT_ABSENT:
  case SUSPECT_ENDED:
    return words_of_absent(arena, rank, f);
  case SUSPECT_NO_RECORD:
    return arena_printf(arena, "Rank %u left no record, and %s %s for it in %s.", rank, f->others,
                        wait(f->n_others), f->call);
  case SUSPECT_OLDER_CALLS:
    return arena_printf(
        arena,
        "Rank %u is still in %s, which %u of the %u members with a record of it have finished.",
        rank, f->call, f->some, f->all);
  case SUSPECT_IN_CIRCLE:
  case SUSPECT_OTHER_ORDER:
    return words_of_order(arena, rank, f);
  case SUSPECT_UNMET:
    return arena_printf(arena,
                        "Rank %u %s: they wait for different messages, as with another tag, or "
                        "what carries it does not move.",
                        rank, f->detail);
  case SUSPECT_NCCL_ERROR:
    return arena_printf(arena, "All %u members are in %s.", f->all, f->call);
  case SUSPECT_NOT_BEGUN:
    return arena_printf(arena, "%s has begun on %u of %u members, not on rank %u.", f->call,
                        f->some, f->all, rank);
  default:
    return f->call ? arena_printf(arena, "%s: %s.", f->call, f->detail)
                   : as_sentence(arena, f->detail);
  }
}

char *words_of_suspect(struct arena *arena, const struct check_suspect *suspect) {
  char *words = words_of_reason(arena, suspect);
  return suspect->facts.where ? arena_printf(arena, "%s %s", words, suspect->facts.where) : words;
}

char *words_with_stall(struct arena *arena, const char *words, const struct stalled_rank *stall) {
  return arena_printf(arena, "%s %s%s.", words, stall->begins, stall->words);
}

char *words_with_last_seen(struct arena *arena, const char *words, const char *place) {
  return arena_printf(arena, "%s It was last seen at %s.", words, place);
}
