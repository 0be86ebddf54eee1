/* SPDX-License-Identifier: MIT */

#include "analyses/queries.h"
#include "analyses/run_end/run_end.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/reordered.h"

/* One rank's collectives on one communicator, in the order in which it called them. */
struct member {
  u32 rank; /* index into model.ranks */
  u32 n;
  struct own_call *calls;
};

struct comm_calls {
  struct member *members;
  u32 n;
};

static void list_members(const struct analysis *a, u32 c, struct comm_calls *calls) {
  const struct model *model = a->model;
  const struct comm *comm = &model->comms[c];
  *calls = (struct comm_calls){arena_array(a->arena, comm->size, sizeof(struct member)), 0};
  FOR_EACH(comm->members, comm->size, one) {
    if (*one == INDEX_NONE)
      continue;
    struct member *member = &calls->members[calls->n++];
    member->rank = *one;
    u32 n = model_own_calls(model, member->rank, c, NULL, 0);
    member->calls = arena_array(a->arena, n, sizeof(*member->calls));
    member->n = model_own_calls(model, member->rank, c, member->calls, n);
  }
}

static bool same_call(const struct own_call *a, const struct own_call *b) {
  return a->op == b->op && a->bytes == b->bytes && a->dtype == b->dtype;
}

static u64 call_key(const struct own_call *call) {
  const u64 parts[3] = {call->op, call->bytes, call->dtype};
  return hash_bytes(0, parts, sizeof(parts));
}

/* Up to where two lists agree. */
static u32 count_equal_calls(const struct member *a, const struct member *b) {
  u32 i = 0;
  while (i < a->n && i < b->n && same_call(&a->calls[i], &b->calls[i]))
    i++;
  return i;
}

static bool same_calls(const struct member *a, const struct member *b) {
  u32 shorter = MIN(a->n, b->n);
  return count_equal_calls(a, b) == shorter;
}

/* A member whose calls are those of most members, as far as both lists go, and that made as many as
 * most of these: the shortest list agrees with any. NULL if there is no majority. */
static const struct member *typical_member(const struct comm_calls *calls) {
  const struct member *best = NULL;
  u32 most = 0;
  FOR_EACH(calls->members, calls->n, item) {
    u32 same = 0, as_many = 0;
    FOR_EACH(calls->members, calls->n, each) {
      bool one = same_calls(item, each);
      same += one;
      as_many += one && item->n == each->n;
    }
    if (2 * same > calls->n && as_many * calls->n + same > most) {
      most = as_many * calls->n + same;
      best = item;
    }
  }
  return best;
}

/* Whether most of those that came to where two lists differ made the call of `most` there. */
static bool is_usual_call(const struct comm_calls *calls, const struct member *odd,
                          const struct member *most) {
  u32 at = count_equal_calls(odd, most);
  if (at >= odd->n || at >= most->n)
    return true;
  u32 came = NUMBER_OF(calls->members, calls->n, one, at < one->n);
  u32 alike = NUMBER_OF(calls->members, calls->n, one,
                        at < one->n && same_call(&one->calls[at], &most->calls[at]));
  return 2 * alike > came;
}

/* Where two lists of calls differ first, if `longer` has so many more; the end of the shorter one
 * if they do not differ. What is at that place decides only if the rest agrees when it is left out.
 */
static bool find_insertion(const struct member *longer, const struct member *shorter, u32 *at) {
  enum { ENOUGH = 64 };
  u32 i = *at = count_equal_calls(longer, shorter), more = longer->n - shorter->n;
  u32 end = shorter->n - i < ENOUGH ? shorter->n : i + ENOUGH;
  return i < end &&
         !ANY_NUMBER(i, end, k, !same_call(&longer->calls[k + more], &shorter->calls[k]));
}

/* What a member called in each step. */
struct step_calls {
  u32 n, first;
};

/* Counts them in one pass; returns the last step in which it called anything, -1 if there is none.
 */
static i32 count_by_step(const struct analysis *a, const struct member *member,
                         struct step_calls *steps) {
  i32 last = -1;
  for (u32 i = 0; i < member->n; i++) {
    i32 step = model_step_at(a->model, member->rank, member->calls[i].start);
    if (step < 0)
      continue;
    if (steps[step].n++ == 0)
      steps[step].first = i;
    last = MAX(step, last);
  }
  return last;
}

/* If all calls are alike, the step decides: the first in which one list has more calls than the
 * other, which went on to a later step. Where the other has more in some step, the bounds of steps
 * do not separate these calls. */
static bool find_step_difference(const struct analysis *a, const struct member *more,
                                 const struct member *fewer, u32 *at) {
  u32 n_steps = a->model->steps.n;
  SCOPED struct step_calls *of_more =
      memory_zeroed(size_sum(size_product(2, n_steps), 1), sizeof(*of_more));
  struct step_calls *of_fewer = of_more + n_steps;
  count_by_step(a, more, of_more);
  i32 last = count_by_step(a, fewer, of_fewer), first = -1;
  bool separated = true;
  for (i32 step = 0; step < last && separated; step++) {
    separated = of_more[step].n >= of_fewer[step].n;
    if (first < 0 && of_more[step].n > of_fewer[step].n)
      first = step;
  }
  first = separated ? first : -1;
  if (first >= 0)
    *at = of_more[first].first + of_more[first].n - 1;
  return first >= 0;
}

/* Whether a list goes on like another one that leaves out its call `at`, up to `end`. */
static bool is_without(const struct member *list, const struct member *other, u32 at, u32 end) {
  return !ANY_NUMBER(at, end, i, !same_call(&list->calls[i], &other->calls[i + 1]));
}

/* Steps that a rank had finished by then. */
static u32 steps_before(const struct analysis *a, u32 rank, i64 time) {
  u32 n = 0;
  for (u32 s = 0; s < a->model->steps.n; s++) {
    i64 end = step_on_host(a->model, s, rank).end;
    n += end != NS_UNKNOWN && end <= time;
  }
  return n;
}

/* They differ, and did not go on far enough to decide by what follows: the same call twice in one
 * step is one too many. */
static bool is_repeated(const struct analysis *a, const struct member *member, u32 at) {
  return at && same_call(&member->calls[at - 1], &member->calls[at]) &&
         steps_before(a, member->rank, member->calls[at - 1].start) ==
             steps_before(a, member->rank, member->calls[at].start);
}

/* How a member's calls differ from most members'. */
enum difference_kind { LEFT_OUT, ONE_TOO_MANY, OTHER_ORDER, OTHER_CALL };

struct difference {
  const struct member *of; /* whose call it is */
  u32 at;
  enum difference_kind kind;
};

/* Whether both lists go on with the same few calls, in another order, and then agree. */
static bool is_other_order(const struct member *a, const struct member *b, u32 at) {
  u32 n = MIN(a->n, b->n) - at;
  SCOPED u64 *keys = memory_array(size_product(2, size_sum(n, 1)), sizeof(*keys));
  for (u32 i = 0; i < n; i++) {
    keys[i] = call_key(&a->calls[at + i]);
    keys[n + i] = call_key(&b->calls[at + i]);
  }
  return reordered_until(keys, keys + n, n) != 0;
}

/* False if the odd member only made fewer steps, or more. */
static bool find_difference(const struct analysis *a, const struct member *odd,
                            const struct member *most, struct difference *difference) {
  const struct member *longer = odd->n < most->n ? most : odd,
                      *shorter = odd->n < most->n ? odd : most;
  *difference = (struct difference){longer, count_equal_calls(odd, most),
                                    odd->n < most->n ? LEFT_OUT : ONE_TOO_MANY};
  if (odd->n != most->n && (find_insertion(longer, shorter, &difference->at) ||
                            find_step_difference(a, longer, shorter, &difference->at)))
    return true;
  u32 equal = count_equal_calls(odd, most), at;
  difference->at = equal;
  if (equal >= shorter->n)
    return false;
  if (find_step_difference(a, most, odd, &at) && at < equal && is_without(odd, most, at, equal)) {
    *difference = (struct difference){most, at, LEFT_OUT};
    return true;
  }
  bool without = equal + 1 < most->n && same_call(&odd->calls[equal], &most->calls[equal + 1]);
  difference->kind = is_other_order(odd, most, equal)      ? OTHER_ORDER
                     : is_repeated(a, odd, difference->at) ? ONE_TOO_MANY
                     : without                             ? LEFT_OUT
                                                           : OTHER_CALL;
  difference->of = difference->kind == LEFT_OUT ? most : odd;
  return true;
}

static char *describe_difference(const struct analysis *a, const struct member *odd,
                                 const struct member *most, const struct difference *difference) {
  const struct own_call *what = &difference->of->calls[difference->at];
  const char *op = op_name(what->op);
  u32 rank = a->model->ranks[odd->rank].rank;
  struct quantity steps = plural(steps_before(a, difference->of->rank, what->start), "step");
  if (difference->kind == OTHER_CALL)
    return say(a,
               "rank %u called %s of %llu bytes where its peers called %s of %llu (call number %u, "
               "after %s)",
               rank, op, (unsigned long long)what->bytes, op_name(most->calls[difference->at].op),
               (unsigned long long)most->calls[difference->at].bytes, difference->at, steps.text);
  if (difference->kind == OTHER_ORDER)
    return say(a,
               "rank %u made the calls of its peers in another order: %s of %llu bytes before %s "
               "of %llu (call number %u, after %s)",
               rank, op, (unsigned long long)what->bytes, op_name(most->calls[difference->at].op),
               (unsigned long long)most->calls[difference->at].bytes, difference->at, steps.text);
  return say(a,
             "rank %u made %s where its peers made %u: it %s %s of %llu bytes (call number "
             "%u, after %s)",
             rank, plural(odd->n, "call").text, most->n,
             difference->kind == LEFT_OUT ? "left out" : "made one too many,", op,
             (unsigned long long)what->bytes, difference->at, steps.text);
}

void calls_compare(const struct analysis *a, struct call_counts *counts) {
  const struct model *model = a->model;
  *counts = (struct call_counts){.odd = arena_array(a->arena, model->n_ranks, sizeof(u32))};
  for (u32 c = 0; c < model->n_comms; c++) {
    struct comm_calls calls;
    if (model->comms[c].size < 2)
      continue;
    list_members(a, c, &calls);
    const struct member *most = calls.n == model->comms[c].size ? typical_member(&calls) : NULL;
    for (u32 i = 0; most && i < calls.n; i++) {
      const struct member *odd = &calls.members[i];
      struct difference difference;
      if (ranks_have(counts->odd, counts->n_odd, odd->rank) || !is_usual_call(&calls, odd, most) ||
          !find_difference(a, odd, most, &difference))
        continue;
      char *words = describe_difference(a, odd, most, &difference);
      counts->odd[counts->n_odd++] = odd->rank;
      counts->words = counts->words ? say(a, "%s; %s", counts->words, words) : words;
    }
  }
}
