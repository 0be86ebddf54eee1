/* SPDX-License-Identifier: MIT
 *
 * Pipelines, found from who sends to whom, and the time for which their ranks are idle because of
 * them.
 *
 * Ranks that exchange messages with at most two others form chains. A chain in which every link
 * carries as many messages in one direction as in the other is a pipeline: activations go one way,
 * gradients the other way. The end whose steps begin with a send is stage 0, and a link carries one
 * message each way per micro-batch: m a step. A ring is an interleaved schedule: between its last
 * and its first stage go only (v - 1) x m of the v x m messages of the other links. Of two stages
 * both are the same link, with (2 v - 1) x m; how many backward passes a rank runs tells how many
 * that are: v x m, or 2 v x m where gradients of inputs and of weights are computed apart. In a V
 * the last stage gives the first half of its output to itself, and stage 0 has the loss: backward
 * begins there, and links carry 2 m.
 *
 * A stage of p cannot work while the pipeline fills and drains: (p - 1) / (v m + p - 1) of its time
 * under GPipe and 1F1B [Narayanan et al., 2021]. This is compared with what was measured: the share
 * of (work + bubble) that is bubble, where bubble is exposed communication between stages and
 * exposed wait in collectives, and work is compute, without a GPU all but communication; mean over
 * the pipeline's ranks. Only the excess can be saved.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/queries.h"
#include "base/sorting.h"

enum { MOST_LINKS = 2 };

/* Of two stages with v chunks, messages each way for a backward pass are 2 - 1 / v: at least 1.5.
 */
#define LEAST_OF_TWO 1.45
#define LEAST_BATCHES 1.5
#define NEARLY_WHOLE 0.05 /* a number of micro-batches, where some steps are cut */

struct message {
  u32 from, to;
  u64 bytes;
  i64 sent;
  i32 step;
};

/* What two ranks exchange. */
struct link {
  u32 low, high;
  u64 bytes;       /* of its messages */
  double up, down; /* messages a step from low to high, and back */
};

struct chain {
  u32 *ranks; /* in order of stages */
  u32 stages;
  double micro_batches, chunks;
};

/* Over all pipelines of the job: they are replicas of each other. */
struct sums {
  double bubble_ms, work_ms;
  bool differ, unknown;
};

struct stage_search {
  struct analysis *a;
  struct arena scratch;
  struct message *messages;
  u32 n_messages;
  struct link *links;
  u32 n_links;
  u32 (*links_of)[MOST_LINKS]; /* [n_ranks] */
  u32 *n_links_of;
  bool *in_pipeline; /* [n_ranks] */
};

static u32 low_of(const struct message *message) {
  return MIN(message->from, message->to);
}

static u32 high_of(const struct message *message) {
  return message->from ^ message->to ^ low_of(message);
}

ORDER_BY(by_pair, struct message, UP_OF(low_of) UP_OF(high_of) UP(step) UP(sent) UP(from))

static void collect_messages(struct stage_search *s) {
  const struct model *model = s->a->model;
  s->messages = arena_array(&s->scratch, model->n_collectives, sizeof(*s->messages));
  FOR_EACH(model->collectives, model->n_collectives, c) {
    if (c->op != TSCOPE_OP_SEND || c->n_arrivals != 2 || !analysis_includes(s->a, c))
      continue;
    const struct arrival *pair = members_of(model, c);
    if (pair[0].rank != pair[1].rank)
      s->messages[s->n_messages++] =
          (struct message){pair[0].rank, pair[1].rank, c->bytes, pair[0].call_start, c->step};
  }
  SORT(s->messages, s->n_messages, by_pair);
}

/* In how many steps a pair exchanges messages of a size. */
static u32 count_steps(const struct message *messages, u32 n, u64 bytes, i32 *last) {
  u32 steps = 0;
  *last = INT32_MIN;
  FOR_EACH(messages, n, message) {
    if (message->bytes != bytes)
      continue;
    steps += message->step != *last;
    *last = message->step;
  }
  return steps;
}

/* Counts the messages of one pair. Frameworks also send shapes and flags, so only the largest size
 * is counted, and per step, so that a step that was cut does not matter: the last one of a pair
 * that was not recorded to the end. */
static struct link count_link(const struct stage_search *s, const struct message *messages, u32 n) {
  u64 largest = LARGEST(messages, n, one, true, (double)one->bytes)->bytes;
  struct link link = {.low = low_of(messages), .high = high_of(messages), .bytes = largest};
  i32 last;
  u32 steps = count_steps(messages, n, largest, &last);
  bool cut = steps > 1 && steps < s->a->n_steps;
  FOR_EACH(messages, n, message) {
    if (message->bytes == largest && !(cut && message->step == last))
      *(message->from == link.low ? &link.up : &link.down) += 1;
  }
  link.up /= steps - cut;
  link.down /= steps - cut;
  return link;
}

static u32 pair_length(const struct stage_search *s, u32 from) {
  return ROW_OF_EQUALS(&s->messages[from], s->n_messages - from, first, one,
                       low_of(first) == low_of(one) && high_of(first) == high_of(one));
}

/* False where some rank exchanges messages with more than two others: no pipeline. */
static bool list_links(struct stage_search *s) {
  u32 n_ranks = s->a->model->n_ranks;
  s->links = arena_array(&s->scratch, n_ranks, sizeof(*s->links));
  s->links_of = arena_array(&s->scratch, n_ranks, sizeof(*s->links_of));
  s->n_links_of = arena_array(&s->scratch, n_ranks, sizeof(u32));
  s->in_pipeline = arena_array(&s->scratch, n_ranks, sizeof(bool));
  for (u32 i = 0, n; i < s->n_messages; i += n) {
    n = pair_length(s, i);
    struct link link = count_link(s, &s->messages[i], n);
    if (s->n_links_of[link.low] == MOST_LINKS || s->n_links_of[link.high] == MOST_LINKS)
      return false;
    s->links_of[link.low][s->n_links_of[link.low]++] = s->n_links;
    s->links_of[link.high][s->n_links_of[link.high]++] = s->n_links;
    s->links[s->n_links++] = link;
  }
  return s->n_messages > 0;
}

/* Walks from `rank` over `link` on to the other end, or once round the ring. Returns the number of
 * ranks passed. */
static u32 follow_links(struct stage_search *s, u32 rank, u32 link, u32 *ranks) {
  u32 n = 0, first = rank;
  ranks[n++] = rank;
  for (;;) {
    rank = s->links[link].low ^ s->links[link].high ^ rank;
    if (rank == first)
      return n;
    ranks[n++] = rank;
    if (s->n_links_of[rank] < 2)
      return n;
    link = s->links_of[rank][0] ^ s->links_of[rank][1] ^ link;
  }
}

/* Whether in most steps the rank's first message is one that it sends. Steps that were found by the
 * period of collectives may begin in the middle of a schedule: there the first message of the run
 * counts. */
static bool sends_first(struct stage_search *s, u32 rank) {
  const struct model *model = s->a->model;
  bool one = s->a->whole_run || model->steps.by_collectives;
  u32 n = one ? 1 : model->steps.n;
  struct first {
    bool seen, sends;
    i64 time;
  } *firsts = arena_array(&s->scratch, n, sizeof(*firsts));
  i64 votes = 0;
  FOR_EACH(model->arrivals, model->n_arrivals, arrival) {
    u32 step = one ? 0 : (u32)arrival->step;
    bool message = op_is_message(arrival->op);
    if (arrival->rank == rank && message && step < n &&
        (!firsts[step].seen || arrival->call_start < firsts[step].time))
      firsts[step] = (struct first){true, arrival->op == TSCOPE_OP_SEND, arrival->call_start};
  }
  FOR_EACH(firsts, n, each)
    votes += each->seen ? (each->sends ? 1 : -1) : 0;
  return votes > 0;
}

static double messages_up(const struct link *link, u32 from) {
  return link->low == from ? link->up : link->down;
}

static const struct link *link_between(const struct stage_search *s, u32 one, u32 other) {
  const u32 *found = FIND(s->links_of[one], s->n_links_of[one], link,
                          (s->links[*link].low ^ s->links[*link].high ^ one) == other);
  return found ? &s->links[*found] : NULL;
}

static double messages_between(const struct stage_search *s, u32 one, u32 other) {
  const struct link *link = link_between(s, one, other);
  return link->up + link->down;
}

static bool nearly_equal(double x, double y) {
  return fabs(x - y) <= 0.05 * fmax(x, y);
}

/* A rank's passes in a step; NULL if it ran no backward pass in it. */
static const struct phase_times *passes_of(const struct stage_search *s, u32 step, u32 rank) {
  const struct model *model = s->a->model;
  const struct phase_times *passes = &model->phases[cell_of_step(model, step, rank)];
  return passes->backwards ? passes : NULL;
}

/* Whether backward begins on stage 0, and not on the last: a V. Where steps may begin in the middle
 * of a schedule, only the first that tells counts. */
static bool turns_at_last(const struct stage_search *s, const struct chain *chain) {
  const struct model *model = s->a->model;
  u32 first = chain->ranks[0], last = chain->ranks[chain->stages - 1];
  i64 votes = 0;
  if (!model->phases || !model->ranks[first].clock.aligned || !model->ranks[last].clock.aligned)
    return false;
  for (u32 step = 0; step < model->steps.n && !(model->steps.by_collectives && votes); step++) {
    const struct phase_times *of_first = passes_of(s, step, first),
                             *of_last = passes_of(s, step, last);
    if (of_first && of_last)
      votes += of_first->backward_begin < of_last->backward_begin ? 1 : -1;
  }
  return votes > 0;
}

/* Backward passes of a rank in a step; NAN if they are not known. */
static double backwards_a_step(const struct stage_search *s, u32 rank) {
  const struct model *model = s->a->model;
  u32 passes = 0, steps = 0;
  for (u32 step = 0; step < model->steps.n; step++) {
    const struct phase_times *of_rank = passes_of(s, step, rank);
    passes += of_rank ? of_rank->backwards : 0;
    steps += of_rank != NULL;
  }
  return (double)passes / steps;
}

/* Whether in most steps the last of two stages sends before it runs backward: activations. */
static bool sends_activations(const struct stage_search *s, const struct link *link, u32 last) {
  i64 votes = 0;
  i32 step = -1;
  FOR_EACH(s->messages, s->n_messages, message) {
    if (message->from != last || message->bytes != link->bytes || message->step == step ||
        analysis_times_of(s->a, message->step) != TIMES_KEPT)
      continue;
    step = message->step;
    const struct phase_times *passes = step >= 0 ? passes_of(s, (u32)step, last) : NULL;
    if (passes)
      votes += message->sent < passes->backward_begin ? 1 : -1;
  }
  return votes > 0;
}

/* By how many chunks messages can be divided so that micro-batches are whole; NAN where there are
 * several such numbers. */
static double chunks_that_divide(double each) {
  double chunks = NAN, batches = each;
  for (u32 n = 2; batches > LEAST_BATCHES; n++) {
    batches = each / (2 * n - 1);
    if (batches < LEAST_BATCHES || fabs(batches - round(batches)) > NEARLY_WHOLE)
      continue;
    if (!isnan(chunks))
      return NAN;
    chunks = n;
  }
  return chunks;
}

/* How many chunks two stages have that exchange so many messages each way. A backward pass may be
 * two, for gradients of inputs and of weights, or any number; NAN if nothing tells. */
static double chunks_of_two(const struct stage_search *s, const struct chain *chain, double each) {
  if (!s->a->model->phases ||
      !sends_activations(s, link_between(s, chain->ranks[0], chain->ranks[1]), chain->ranks[1]))
    return 1;
  double for_each = each / backwards_a_step(s, chain->ranks[1]);
  for (u32 parts = 1; parts <= 2; parts++)
    if (parts * for_each > LEAST_OF_TWO && parts * for_each < 2)
      return round(1 / (2 - parts * for_each));
  return chunks_that_divide(each);
}

/* Cuts a ring behind its last stage: the link there carries the fewest messages. */
static void cut_ring(const struct stage_search *s, struct chain *chain, u32 *ranks) {
  u32 n = chain->stages;
  u32 last = NUMBER_OF_LARGEST(0, n, i, -messages_between(s, ranks[i], ranks[(i + 1) % n]));
  for (u32 i = 0; i < n; i++)
    chain->ranks[i] = ranks[(last + 1 + i) % n];
}

/* Whether the links carry what the links of a pipeline do, and how many micro-batches that makes.
 */
static bool matches_pipeline(const struct stage_search *s, struct chain *chain, bool ring) {
  const struct link *link = link_between(s, chain->ranks[0], chain->ranks[1]);
  double each = messages_up(link, chain->ranks[0]);
  for (u32 i = 0; i + 1 < chain->stages; i++) {
    link = link_between(s, chain->ranks[i], chain->ranks[i + 1]);
    if (!nearly_equal(link->up, link->down) ||
        !nearly_equal(messages_up(link, chain->ranks[i]), each))
      return false;
  }
  double wrap = 0;
  if (ring) {
    link = link_between(s, chain->ranks[chain->stages - 1], chain->ranks[0]);
    wrap = link->up;
    if (!nearly_equal(link->up, link->down) || wrap > 0.95 * each)
      return false; /* a ring of equals: an attention ring, or an exchange of halos */
  }
  bool turns = !ring && turns_at_last(s, chain), two = !ring && !turns && chain->stages == 2;
  chain->chunks = ring    ? round(each / (each - wrap))
                  : turns ? 2
                  : two   ? chunks_of_two(s, chain, each)
                          : 1;
  chain->micro_batches = round(each / (two ? 2 * chain->chunks - 1 : chain->chunks));
  return !(chain->micro_batches < 1);
}

/* The pipeline that `rank` is part of; false where it is in none. */
static bool find_chain(struct stage_search *s, u32 rank, struct chain *chain) {
  u32 n_ranks = s->a->model->n_ranks;
  u32 *ranks = arena_array(&s->scratch, n_ranks, sizeof(u32));
  chain->ranks = arena_array(s->a->arena, n_ranks, sizeof(u32));
  u32 n = follow_links(s, rank, s->links_of[rank][0], ranks);
  bool ring = n > 2 && s->n_links_of[ranks[n - 1]] == 2;
  if (!ring && s->n_links_of[rank] == 2) { /* the walk began in the middle: now from its end */
    rank = ranks[n - 1];
    n = follow_links(s, rank, s->links_of[rank][0], ranks);
  }
  FOR_EACH(ranks, n, one)
    s->in_pipeline[*one] = true;
  chain->stages = n;
  if (ring)
    cut_ring(s, chain, ranks);
  else
    memcpy(chain->ranks, ranks, n * sizeof(*ranks));
  bool forth = sends_first(s, chain->ranks[0]), back = sends_first(s, chain->ranks[n - 1]);
  if (forth == back) /* both give first: an exchange, as of experts */
    return false;
  for (u32 i = 0; i < n / 2 && back; i++) {
    u32 swapped = chain->ranks[i];
    chain->ranks[i] = chain->ranks[n - 1 - i];
    chain->ranks[n - 1 - i] = swapped;
  }
  return matches_pipeline(s, chain, ring);
}

/* A rank's bubble and own work per step; false where they are not known. */
static bool add_rank_times(const struct rank_summary *rank, double *bubble_ms, double *work_ms) {
  if (!rank_overlap_known(rank))
    return false;
  i64 bubble = rank->all.wait + TOTAL(i64, rank->by_op.at, rank->by_op.n, one,
                                      op_is_message(one->op) ? one->exposed - one->wait : 0);
  *bubble_ms = ns_to_ms(bubble) / rank->steps;
  /* Without a GPU a stage may also work where nothing shows it: asleep, or in other libraries. */
  i64 work = rank->on_gpu ? rank->compute : rank->total - rank->exposed_comm;
  *work_ms = ns_to_ms(work) / rank->steps;
  return true;
}

static void begin_stages(struct analysis *a, const struct chain *chain) {
  struct results *r = a->results;
  r->pipeline_stages = chain->stages;
  r->pipeline_micro_batches = chain->micro_batches;
  r->pipeline_chunks = chain->chunks;
  r->pipeline_stage = arena_array(a->arena, chain->stages, sizeof(*r->pipeline_stage));
  r->n_pipeline_stage = chain->stages;
  for (u32 i = 0; i < chain->stages; i++) {
    struct pipeline_stage *stage = &r->pipeline_stage[i];
    stage->stage = i;
    stage->ranks = arena_array(a->arena, a->model->n_ranks, sizeof(u32));
  }
}

static bool differ(double x, double y) {
  return x != y && !(isnan(x) && isnan(y));
}

static void add_pipeline(struct analysis *a, const struct chain *chain, struct sums *sums) {
  struct results *r = a->results;
  if (r->n_pipeline_stage == 0) {
    begin_stages(a, chain);
  } else if (r->pipeline_stages != chain->stages ||
             differ(r->pipeline_micro_batches, chain->micro_batches)) {
    sums->differ = true;
    return;
  }
  for (u32 i = 0; i < chain->stages; i++) {
    struct pipeline_stage *stage = &r->pipeline_stage[i];
    double bubble, work;
    if (!add_rank_times(&a->ranks[chain->ranks[i]], &bubble, &work)) {
      sums->unknown = true;
      continue;
    }
    sums->bubble_ms += bubble;
    sums->work_ms += work;
    stage->work_ms += work;
    stage->bubble_ms += bubble;
    stage->ranks[stage->n_ranks++] = a->model->ranks[chain->ranks[i]].rank;
  }
}

static void fill_totals(struct analysis *a, const struct sums *sums) {
  struct results *r = a->results;
  u32 ranks = 0;
  FOR_EACH_CHANGED(r->pipeline_stage, r->n_pipeline_stage, stage) {
    ranks += stage->n_ranks;
    stage->work_ms = stage->n_ranks ? stage->work_ms / stage->n_ranks : NAN;
    stage->bubble_ms = stage->n_ranks ? stage->bubble_ms / stage->n_ranks : NAN;
  }
  if (sums->differ) {
    r->pipeline_reason = "the job's pipelines differ";
    return;
  }
  if (isnan(r->pipeline_chunks)) {
    r->pipeline_reason = "the messages do not tell how many chunks of the model a stage has";
    return;
  }
  double fills = r->pipeline_stages - 1;
  r->pipeline_inherent = fills / (r->pipeline_chunks * r->pipeline_micro_batches + fills);
  double both = sums->bubble_ms + sums->work_ms;
  if (sums->unknown || !(both > 0)) {
    r->pipeline_reason =
        r->overlap_reason ? r->overlap_reason : "compute is not known on all ranks";
    return;
  }
  r->pipeline_bubble = sums->bubble_ms / both;
  r->pipeline_excess = fmax(0, r->pipeline_bubble - r->pipeline_inherent);
  /* What the step would lose if the excess were gone: work stays, the bubble shrinks. */
  double least = sums->work_ms * r->pipeline_inherent / (1 - r->pipeline_inherent);
  r->pipeline_excess_ms = fmax(0, sums->bubble_ms - least) / ranks;
}

void pipeline_analyse(struct analysis *a) {
  struct results *r = a->results;
  struct stage_search s = {.a = a};
  struct sums sums = {0};
  r->pipeline_excess_ms = NAN;
  collect_messages(&s);
  bool chained = list_links(&s);
  for (u32 rank = 0; rank < a->model->n_ranks && chained; rank++) {
    struct chain chain;
    if (s.n_links_of[rank] && !s.in_pipeline[rank] && find_chain(&s, rank, &chain))
      add_pipeline(a, &chain, &sums);
  }
  if (r->n_pipeline_stage)
    fill_totals(a, &sums);
  else
    r->pipeline_reason = s.n_messages ? "messages between ranks do not form a pipeline"
                                      : "no messages between ranks were recorded";
  arena_release(&s.scratch);
}
