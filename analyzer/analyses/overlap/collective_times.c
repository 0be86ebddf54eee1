/* SPDX-License-Identifier: MIT
 *
 * Wait and transfer of each collective, and bandwidth by (communicator, op, size).
 *
 * On one time axis a collective waits until its last member starts and transfers from then on:
 * transfer = median over members of (end - last start). Without one, the member that arrived last
 * waited for nobody: transfer = the shortest duration, wait = duration - transfer. A member that
 * was not found cannot be waited for here: then wait is a lower bound.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "base/by_key.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/parallel.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "kernels/communication.h"

static i64 call_transfer_begin(const struct analysis *a, const struct arrival *call) {
  if (comm_op_name(call->op) && !comm_op_like(call->op))
    return call->start; /* such an operation waits for nobody */
  if (call->collective == INDEX_NONE || !arrival_has_run(call))
    return NS_UNKNOWN;
  const struct collective *collective = &a->model->collectives[call->collective];
  if (collective->n_arrivals < 2 && !collective->complete)
    return NS_UNKNOWN; /* the others were not seen */
  if (a->model->clock_aligned && collective->last_start != NS_UNKNOWN)
    return collective->last_start;
  i64 transfer = a->transfer[call->collective];
  return transfer == NS_UNKNOWN ? NS_UNKNOWN : call->end - transfer;
}

i64 arrival_transfer_begin(const struct analysis *a, const struct arrival *arrival) {
  u32 first = (u32)(arrival - a->model->arrivals), call = first;
  i64 latest = NS_UNKNOWN; /* below all times */
  do {
    i64 begin = call_transfer_begin(a, &a->model->arrivals[call]);
    latest = MAX(begin, latest);
    call = a->next_call[call];
  } while (call != first);
  if (latest == NS_UNKNOWN)
    return NS_UNKNOWN;
  latest = MAX(arrival->start, latest);
  return MIN(arrival->end, latest);
}

static i64 transfer_of(const struct model *model, const struct collective *collective) {
  bool aligned = model->clock_aligned && collective->last_start != NS_UNKNOWN;
  u32 n = collective->n_arrivals, known = 0;
  if (n < 2 || (!aligned && !op_is_barrier_like(collective->op)))
    return NS_UNKNOWN;
  double few[64], *values = n <= 64 ? few : memory_array(n, sizeof(*values));
  i64 shortest = INT64_MAX;
  FOR_EACH_MEMBER(model, collective, member) {
    if (!arrival_has_run(member))
      break;
    i64 duration = member->end - member->start;
    i64 after = aligned ? member->end - collective->last_start : 0;
    shortest = MIN(duration, shortest);
    values[known++] = after > 0 ? (double)after : 0;
  }
  i64 transfer = known < n ? NS_UNKNOWN : aligned ? (i64)median_of(values, n) : shortest;
  if (values != few)
    free(values);
  return transfer;
}

#define COLLECTIVES_A_TIME 4096u

static void fill_transfers(void *user, u32 index, unsigned worker) {
  struct analysis *a = user;
  u32 end = (index + 1) * COLLECTIVES_A_TIME;
  (void)worker;
  for (u32 i = index * COLLECTIVES_A_TIME; i < end && i < a->model->n_collectives; i++) {
    const struct collective *one = &a->model->collectives[i];
    bool usual = analysis_times_of(a, one->step) == TIMES_KEPT;
    a->transfer[i] = usual ? transfer_of(a->model, one) : NS_UNKNOWN;
  }
}

void collectives_prepare(struct analysis *a) {
  u32 n = a->model->n_collectives;
  a->transfer = arena_array(a->arena, n, sizeof(*a->transfer));
  parallel_for((n + COLLECTIVES_A_TIME - 1) / COLLECTIVES_A_TIME, a->options->threads,
               fill_transfers, a);
}

/* Sizes of a communicator's operation of which none is in as many as half of the steps, if there
 * are more than so many: they differ from step to step. */
enum { FEW_SIZES = 8 };
#define ANY_SIZE UINT64_MAX

/* Collectives with the same communicator, op and size; sends also with the same sender and
 * receiver. */
struct kind {
  u64 bytes; /* ANY_SIZE: of sizes that differ from step to step */
  u32 sizes;
  u32 comm;
  u32 from, to; /* index into model.ranks, INDEX_NONE */
  u8 op;
  u32 *of, n; /* indices into model.collectives */
};

typedef HASHED(struct kind) hashed_kinds;

static bool alike(const struct kind *a, const struct kind *b) {
  return a->bytes == b->bytes && a->comm == b->comm && a->op == b->op && a->from == b->from &&
         a->to == b->to;
}

/* Its index in the list. */
static u32 kind_like(hashed_kinds *kinds, struct kind wanted) {
  const u64 words[] = {wanted.op, wanted.bytes, wanted.comm, wanted.from, wanted.to};
  return HASHED_OR_ADD(kinds, table_hash(0, words, sizeof(words)), one, alike(one, &wanted),
                       wanted);
}

static u32 kind_of(hashed_kinds *kinds, const struct model *model, const struct collective *c) {
  const struct arrival *ends = members_of(model, c);
  bool pair = op_is_message(c->op) && c->n_arrivals == 2;
  return kind_like(kinds, (struct kind){.sizes = 1,
                                        .from = pair ? ends[0].rank : INDEX_NONE,
                                        .to = pair ? ends[1].rank : INDEX_NONE,
                                        SAME(c, bytes, comm, op)});
}

/* Counts sizes that differ from step to step as one kind. `kind_of_collective` follows. */
static void join_sizes(hashed_kinds *kinds, u32 steps, u32 *kind_of_collective, u32 n,
                       struct arena *scratch) {
  u32 n_kinds = kinds->n, *any = arena_array(scratch, n_kinds, sizeof(*any));
  for (u32 i = 0; i < n_kinds; i++) {
    struct kind wanted = kinds->at[i];
    bool seldom = 2 * wanted.n < steps;
    wanted.bytes = ANY_SIZE;
    wanted.sizes = wanted.n = 0;
    any[i] = seldom ? kind_like(kinds, wanted) : INDEX_NONE;
    if (seldom)
      kinds->at[any[i]].sizes++;
  }
  FOR_EACH_CHANGED(kind_of_collective, n, each) {
    u32 of = *each, to = of == INDEX_NONE ? INDEX_NONE : any[of];
    if (to == INDEX_NONE || kinds->at[to].sizes <= FEW_SIZES)
      continue;
    kinds->at[of].n--;
    kinds->at[to].n++;
    *each = to;
  }
}

static double median_bytes(const struct model *model, const struct kind *kind, double *scratch) {
  if (kind->bytes != ANY_SIZE)
    return kind->bytes || kind->op == TSCOPE_OP_BARRIER ? (double)kind->bytes : NAN;
  for (u32 i = 0; i < kind->n; i++)
    scratch[i] = (double)model->collectives[kind->of[i]].bytes;
  return median_of(scratch, kind->n);
}

double op_bus_factor(u8 op, u32 n) {
  switch (comm_op_like(op)) {
  case TSCOPE_OP_ALLREDUCE:
    return 2.0 * (n - 1) / n;
  case TSCOPE_OP_REDUCE_SCATTER:
  case TSCOPE_OP_ALLGATHER:
  case TSCOPE_OP_ALLTOALL:
    return (n - 1.0) / n;
  case TSCOPE_OP_BARRIER:
    return NAN;
  default:
    return 1;
  }
}

static double mean_wait_ns(const struct analysis *a, const struct collective *c) {
  return TOTAL(double, members_of(a->model, c), c->n_arrivals, one,
               (double)(arrival_transfer_begin(a, one) - one->start)) /
         c->n_arrivals;
}

enum { MOST_TAGS_TEXT = 40 };

static void add_choice(struct analysis *a, const char *word, const char **words) {
  if (!word || is_in_words(word, *words, '/'))
    return;
  *words = *words ? say(a, "%s/%s", *words, word) : word;
}

/* A tag may be another one for each call: after a few comes "...". */
static const char *tag_text(struct analysis *a, u64 tag, const char *before) {
  if (before && strlen(before) > MOST_TAGS_TEXT)
    return "...";
  return say(a, "%llu", (unsigned long long)tag);
}

/* What NCCL chose for the collectives of a kind, and was asked for. */
static void summarise_choices(struct analysis *a, const struct kind *kind,
                              struct collective_result *out, double *scratch) {
  u32 known = 0;
  FOR_EACH(kind->of, kind->n, item) {
    const struct collective *one = &a->model->collectives[*item];
    add_choice(a, one->algorithm, &out->algorithm);
    add_choice(a, one->protocol, &out->protocol);
    add_choice(a, one->asked, &out->asked);
    if (one->user_tag)
      add_choice(a, tag_text(a, one->user_tag, out->user_tags), &out->user_tags);
    if (one->channels)
      scratch[known++] = one->channels;
  }
  out->channels = median_of(scratch, known);
}

/* How long a transfer took since the last member was there. */
enum bound { EXACT, AT_LEAST, AT_MOST };
enum { ENOUGH_EXACT = 8 };

/* A message has taken no longer than since it was sent, and, as gloo may have it delivered before
 * the receiver comes, no shorter than since both sides are there. NCCL begins only then. */
static double message_time(const struct model *model, const struct collective *c, enum bound as) {
  const struct arrival *send = members_of(model, c), *receive = send + 1;
  if (c->n_arrivals != 2 || !arrival_has_run(send) || !arrival_has_run(receive))
    return NAN;
  /* Where clocks do not tell who came first, their error is in the time, with another sign in the
   * other direction. */
  double after = (double)(receive->start - send->start);
  bool late = model->clock_aligned && after > model_collective_error_ns(model, c, receive->rank);
  if (late && model->comms[c->comm].backend == TSCOPE_BACKEND_NCCL)
    as = AT_LEAST;
  if (late && as == EXACT)
    return NAN;
  return (double)(receive->end - (late && as == AT_LEAST ? receive->start : send->start));
}

/* Of a collective the shortest time of a member, whatever the clocks say. */
static double shortest_time(const struct model *model, const struct collective *c, enum bound as) {
  if (op_is_message(c->op))
    return message_time(model, c, as);
  if (!op_is_barrier_like(c->op))
    return NAN;
  double shortest = NAN;
  FOR_EACH_MEMBER(model, c, member)
    if (arrival_has_run(member))
      shortest = fmin(shortest, (double)(member->end - member->start));
  return shortest;
}

static u32 list_shortest(const struct model *model, const struct kind *kind, enum bound as,
                         double *scratch) {
  return LIST_KNOWN(scratch, 0, kind->n, i,
                    shortest_time(model, &model->collectives[kind->of[i]], as));
}

static double median_shortest(const struct model *model, const struct kind *kind, enum bound as,
                              double *scratch) {
  u32 exact = list_shortest(model, kind, EXACT, scratch);
  u32 n = exact < ENOUGH_EXACT ? list_shortest(model, kind, as, scratch) : exact;
  return ns_to_ms(median_of(scratch, n));
}

static void summarise_kind(struct analysis *a, struct kind *kind, struct collective_result *out,
                           double *scratch) {
  const struct comm *comm = &a->model->comms[kind->comm];
  u32 n = LIST_WHERE(scratch, 0, kind->n, i, a->transfer[kind->of[i]] != NS_UNKNOWN,
                     (double)a->transfer[kind->of[i]]);
  double transfer = median_of(scratch, n);
  n = LIST_WHERE(scratch, 0, kind->n, i, a->transfer[kind->of[i]] != NS_UNKNOWN,
                 mean_wait_ns(a, &a->model->collectives[kind->of[i]]));
  double wait = median_of(scratch, n);
  out->comm = comm_label(comm->name, comm->identity, comm->size, a->arena);
  out->comm_index = kind->comm;
  out->from = kind->from == INDEX_NONE ? INDEX_NONE : a->model->ranks[kind->from].rank;
  out->to = kind->to == INDEX_NONE ? INDEX_NONE : a->model->ranks[kind->to].rank;
  if (out->from != INDEX_NONE)
    out->comm = say(a, "%s %u to %u", out->comm, out->from, out->to);
  out->op = op_name(kind->op);
  out->op_id = kind->op;
  out->count = kind->n;
  out->bytes = median_bytes(a->model, kind, scratch);
  out->sizes = kind->sizes;
  out->wait_ms = ns_to_ms(wait);
  out->transfer_ms = ns_to_ms(transfer);
  out->at_least_ms = median_shortest(a->model, kind, AT_LEAST, scratch);
  out->at_most_ms = op_is_message(kind->op) ? median_shortest(a->model, kind, AT_MOST, scratch)
                                            : out->at_least_ms;
  /* bytes per ns are 1e9 bytes per s */
  out->algbw_gbps = transfer > 0 && out->bytes > 0 ? out->bytes / transfer : NAN;
  out->busbw_gbps = comm->size ? out->algbw_gbps * op_bus_factor(kind->op, comm->size) : NAN;
  summarise_choices(a, kind, out, scratch);
}

static double total_ms(const struct collective_result *one) {
  return one->count * ((isnan(one->wait_ms) ? 0 : one->wait_ms) +
                       (isnan(one->transfer_ms) ? 0 : one->transfer_ms));
}

static double all_bytes(const struct collective_result *one) {
  return isnan(one->bytes) ? (double)INFINITY : one->count * one->bytes;
}

/* Most time first, then most bytes. */
ORDER_BY(by_total_time, struct collective_result,
         DOWN_OF(total_ms) DOWN_OF(all_bytes) BY_TEXT(op) BY_TEXT(comm))

static void summarise_kinds(struct analysis *a, const hashed_kinds *kinds,
                            const u32 *kind_of_collective, double *scratch) {
  struct results *r = a->results;
  struct by_key by_kind = LISTED_BY_KEY(kinds->n, 0, a->model->n_collectives, i,
                                        kind_of_collective[i] != INDEX_NONE, kind_of_collective[i]);
  r->collectives = arena_array(a->arena, kinds->n, sizeof(*r->collectives));
  for (u32 i = 0; i < kinds->n; i++) {
    kinds->at[i].of = &by_kind.at[by_kind.begin[i]];
    if (kinds->at[i].n)
      summarise_kind(a, &kinds->at[i], &r->collectives[r->n_collectives++], scratch);
  }
  FREE_EACH(&by_kind, begin, at);
  SORT(r->collectives, r->n_collectives, by_total_time);
}

void collectives_analyse(struct analysis *a) {
  u32 n = a->model->n_collectives;
  if (n == 0)
    return;
  SCOPED_ARENA struct arena scratch = {0};
  hashed_kinds kinds = {0};
  u32 *kind_of_collective = arena_array(&scratch, n, sizeof(u32));
  double *values = arena_array(&scratch, n, sizeof(double));
  for (u32 i = 0; i < n; i++) {
    kind_of_collective[i] = INDEX_NONE;
    if (!analysis_includes(a, &a->model->collectives[i]))
      continue;
    kind_of_collective[i] = kind_of(&kinds, a->model, &a->model->collectives[i]);
    kinds.at[kind_of_collective[i]].n++;
  }
  if (!a->whole_run)
    join_sizes(&kinds, a->n_steps, kind_of_collective, n, &scratch);
  summarise_kinds(a, &kinds, kind_of_collective, values);
  FREE_EACH(&kinds, at, index.slots);
}
