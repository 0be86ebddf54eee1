/* SPDX-License-Identifier: MIT
 *
 * Time on the GPUs by the operator of the framework that launched it: the innermost around the
 * launch, on its thread. Work whose launch or operator is not recorded has a row of its own, so
 * that rows sum to all that ran.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/gpu/operator_sequences.h"
#include "analyses/queries.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/vector.h"

#define LISTED 200u
#define NO_OPERATOR 0u /* index of the row of what none launched */

struct operator_sum {
  const char *name; /* in the sums' arena; NULL of the first */
  i64 self, total;
  u64 calls, kernels;
};

/* One kernel of one operator. */
struct pair {
  u32 operator, what; /* kernel, or its span's name */
  const struct kernel *kernel;
  i64 ns;
  u64 count;
  u8 kind;
};

struct pairs {
  HASHED(struct pair) list;
};

struct operator_sums {
  pthread_mutex_t lock;
  struct arena arena;
  VECTOR(struct operator_sum) operators;
  struct pairs pairs; /* by operator and kernel.number */
  struct operator_sequences sequences;
};

static struct pair *pair_at(struct pairs *pairs, u32 operator, u32 what) {
  u32 i = HASHED_OR_ADD(&pairs->list, hash_number(what, (u64) operator<< 32), one,
                        one->operator== operator&& one->what == what,
                        (struct pair){.operator= operator, .what = what});
  return &pairs->list.at[i];
}

static void pairs_free(struct pairs *pairs) {
  FREE_EACH(&pairs->list, at, index.slots);
}

void operators_prepare(struct analysis *a) {
  a->operator_sums = arena_alloc(a->arena, sizeof(*a->operator_sums));
  VECTOR_PUSH(&a->operator_sums->operators, (struct operator_sum){0});
  pthread_mutex_init(&a->operator_sums->lock, NULL);
}

void operators_free(struct analysis *a) {
  struct operator_sums *sums = a->operator_sums;
  free(sums->operators.at);
  pairs_free(&sums->pairs);
  operator_sequences_free(&sums->sequences);
  arena_release(&sums->arena);
  pthread_mutex_destroy(&sums->lock);
}

struct rank_operators {
  struct analysis *a;
  const struct timeline *t;
  u32 *inside;    /* [n_spans] of the host: the operator around it, its span + 1 */
  u32 *innermost; /* [n_lanes] open operator, span + 1 */
  VECTOR(struct operator_sum) by_name;
  VECTOR(u32) seen; /* by name: the last work added to its total, + 1 */
  struct pairs pairs;
  u32 *number; /* [n_spans] of an operator: index of its call */
  VECTOR(struct operator_call) calls;
  struct operator_sequences sequences; /* by name */
};

static void add_host_span(struct rank_operators *r, u32 i) {
  const struct span *spans = r->t->spans, *span = &spans[i];
  u32 *open = &r->innermost[span->lane];
  while (*open && spans[*open - 1].end <= span->start)
    *open = r->inside[*open - 1];
  r->inside[i] = *open;
  if (span->kind != SPAN_OP || !span->name)
    return;
  VECTOR_REACH(&r->by_name, span->name);
  VECTOR_REACH(&r->seen, span->name);
  r->by_name.at[span->name].calls++;
  *open = i + 1;
  r->number[i] = r->calls.n;
  VECTOR_PUSH(&r->calls, (struct operator_call){0});
}

/* The innermost operator that launched the work, its span + 1; 0: none. */
static u32 launcher_of(const struct rank_operators *r, const struct span *span) {
  if (span->launch == INDEX_NONE)
    return 0;
  const struct span *launch = &r->t->spans[span->launch];
  return launch->kind == SPAN_OP && launch->name ? span->launch + 1 : r->inside[span->launch];
}

/* The kernel, which all calls around it have launched next. */
static void add_to_sequences(struct rank_operators *r, u32 at, const struct kernel *kernel,
                             i64 took) {
  for (; at; at = r->inside[at - 1])
    operator_call_add(&r->calls.at[r->number[at - 1]], kernel, took);
}

static void add_gpu_work(struct rank_operators *r, u32 i) {
  const struct span *span = &r->t->spans[i];
  i64 took = span->end - span->start;
  u32 at = launcher_of(r, span), innermost = at;
  u32 name = at ? r->t->spans[at - 1].name : 0;
  VECTOR_REACH(&r->by_name, name);
  VECTOR_REACH(&r->seen, name);
  r->by_name.at[name].self += took;
  r->by_name.at[name].kernels++;
  for (; at; at = r->inside[at - 1]) {
    u32 around = r->t->spans[at - 1].name;
    if (r->seen.at[around] != i + 1)
      r->by_name.at[around].total += took;
    r->seen.at[around] = i + 1;
  }
  /* Work without a name is distinguished by its kind. */
  u32 what = span->name ? span->name + SPAN_COLLECTIVE : span->kind;
  struct pair *pair = pair_at(&r->pairs, name, what);
  if (!pair->kernel)
    pair->kernel = kernel_of_span(r->a, r->t, span);
  pair->kind = span->kind;
  pair->ns += took;
  pair->count++;
  add_to_sequences(r, innermost, pair->kernel, took);
}

/* Adds each call to its sequence. The first call of each sequence is kept: it shows which
 * kernels the sequence has. */
static void count_sequences(struct rank_operators *r) {
  for (u32 i = 0; i < r->t->n_spans; i++) {
    const struct span *span = &r->t->spans[i];
    struct operator_call *call =
        span->kind == SPAN_OP && span->name ? &r->calls.at[r->number[i]] : NULL;
    if (!call || call->n < 2)
      continue;
    struct operator_sequence *sequence =
        operator_sequence_at(&r->sequences, operator_call_key(call, span->name));
    if (!sequence)
      continue;
    sequence->operator= span->name;
    sequence->hash = call->hash;
    call->first = sequence->count == 0;
    sequence->count++;
    sequence->ns += call->ns;
  }
}

static void list_kernels(struct rank_operators *r, const struct span *span) {
  for (u32 at = launcher_of(r, span); at; at = r->inside[at - 1]) {
    const struct operator_call *call = &r->calls.at[r->number[at - 1]];
    if (!call->first)
      continue;
    u32 name = r->t->spans[at - 1].name;
    struct operator_sequence *sequence =
        operator_sequence_at(&r->sequences, operator_call_key(call, name));
    if (sequence && sequence->n < SEQUENCE_KERNELS)
      sequence->kernels[sequence->n] = kernel_of_span(r->a, r->t, span);
    if (sequence)
      sequence->n++;
  }
}

/* Index of an operator among those of all ranks; shapes at the end of a name are left out. */
static u32 operator_of(struct operator_sums *sums, const char *name) {
  if (!name)
    return NO_OPERATOR;
  const char *shapes = strstr(name, " [");
  size_t bytes = shapes ? (size_t)(shapes - name) : strlen(name);
  struct operator_sum *found =
      FIND(sums->operators.at, sums->operators.n, one, text_is_piece(one->name, name, bytes));
  if (found)
    return (u32)(found - sums->operators.at);
  const char *copy = arena_printf(&sums->arena, "%.*s", (int)bytes, name);
  VECTOR_PUSH(&sums->operators, (struct operator_sum){.name = copy});
  return sums->operators.n - 1;
}

static void add_operator(struct operator_sum *all, const struct operator_sum *one) {
  ADD_EACH(all, one, self, total, calls, kernels);
}

static void add_pair(struct operator_sums *sums, u32 operator, const struct pair * one) {
  struct pair *all = pair_at(&sums->pairs, operator, one->kernel->number);
  all->kernel = one->kernel;
  all->kind = one->kind;
  all->ns += one->ns;
  all->count += one->count;
}

static void add_sequence(struct operator_sums *sums, u32 operator,
                         const struct operator_sequence * one) {
  const struct operator_call alike = {.hash = one->hash, .n = one->n};
  u64 key = operator_call_key(&alike, operator);
  struct operator_sequence *all = operator_sequence_at(&sums->sequences, key);
  if (!all)
    return;
  u64 count = all->count + one->count;
  i64 ns = all->ns + one->ns;
  *all = *one;
  all->key = key;
  all->operator= operator;
  all->count = count;
  all->ns = ns;
}

/* What one rank adds, written or read: each entry begins with 1, and 0 ends the list. */

static bool carry_next(struct carrier *c) {
  bool more = true;
  CARRY(c, &more);
  return more && !c->bad;
}

static void carry_end(struct carrier *c) {
  bool more = false;
  CARRY(c, &more);
}

/* The name is NULL of what no operator launched. */
static void carry_operator(struct carrier *c, const char **name, struct operator_sum *sum) {
  CARRY(c, name);
  CARRY_EACH(c, sum, self, total, calls, kernels);
}

static void carry_kernel(struct analysis *a, struct carrier *c, const struct kernel **kernel) {
  const char *name = c->reads ? NULL : (*kernel)->raw;
  CARRY(c, &name);
  if (c->reads)
    *kernel = kernel_lookup(a->kernel_names, text_or_empty(name));
}

static void carry_pair(struct analysis *a, struct carrier *c, const char **name,
                       struct pair *pair) {
  CARRY(c, name);
  carry_kernel(a, c, &pair->kernel);
  CARRY_EACH(c, pair, kind, ns, count);
}

static void carry_sequence(struct analysis *a, struct carrier *c, const char **name,
                           struct operator_sequence *sequence) {
  CARRY(c, name);
  CARRY_EACH(c, sequence, n, hash, count, ns);
  for (u32 i = 0; i < sequence->n && i < SEQUENCE_KERNELS && !c->bad; i++)
    carry_kernel(a, c, &sequence->kernels[i]);
}

void operators_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct operator_sums *sums = a->operator_sums;
  const char *name = NULL;
  (void)rank;
  if (!c->reads)
    return;
  pthread_mutex_lock(&sums->lock);
  for (struct operator_sum one = {0}; carry_next(c);) {
    carry_operator(c, &name, &one);
    u32 index = operator_of(sums, name); /* may move the operators */
    add_operator(&sums->operators.at[index], &one);
  }
  for (struct pair one = {0}; carry_next(c);) {
    carry_pair(a, c, &name, &one);
    add_pair(sums, operator_of(sums, name), &one);
  }
  for (struct operator_sequence one = {0}; carry_next(c);) {
    carry_sequence(a, c, &name, &one);
    add_sequence(sums, operator_of(sums, name), &one);
  }
  pthread_mutex_unlock(&sums->lock);
}

/* Writes one, if the rank is kept. */
#define KEEP(keeps, ...)                                                                           \
  do {                                                                                             \
    if (keeps) {                                                                                   \
      carry_next(keeps);                                                                           \
      __VA_ARGS__;                                                                                 \
    }                                                                                              \
  } while (0)

/* Of all ranks, by the operator's index among those of all. */
static void merge_sequences(struct rank_operators *r, const u32 *index) {
  struct analysis *a = r->a;
  struct carrier *keeps = analysis_keeps(a, r->t->rank);
  FOR_EACH_CHANGED(r->sequences.list.at, r->sequences.list.n, one) {
    u32 at = index[one->operator];
    add_sequence(a->operator_sums, at, one);
    KEEP(keeps, carry_sequence(a, keeps, &a->operator_sums->operators.at[at].name, one));
  }
  if (keeps)
    carry_end(keeps);
}

static void merge(struct rank_operators *r) {
  struct analysis *a = r->a;
  struct operator_sums *sums = a->operator_sums;
  struct carrier *keeps = analysis_keeps(a, r->t->rank);
  SCOPED u32 *index = memory_zeroed(size_sum(r->by_name.n, 1), sizeof(*index));
  for (u32 i = 0; i < r->by_name.n; i++) {
    const struct operator_sum *one = &r->by_name.at[i];
    if (!one->calls && !one->kernels)
      continue;
    if (i)
      index[i] = operator_of(sums, r->a->source.name(r->t, i));
    struct operator_sum sum = *one;
    sum.total = i ? one->total : one->self;
    add_operator(&sums->operators.at[index[i]], &sum);
    KEEP(keeps, carry_operator(keeps, &sums->operators.at[index[i]].name, &sum));
  }
  if (keeps)
    carry_end(keeps);
  FOR_EACH_CHANGED(r->pairs.list.at, r->pairs.list.n, one) {
    u32 at = index[one->operator];
    add_pair(sums, at, one);
    KEEP(keeps, carry_pair(a, keeps, &sums->operators.at[at].name, one));
  }
  if (keeps)
    carry_end(keeps);
  merge_sequences(r, index);
}

/* What ran on a rank without operators is already summed by kernel_times. */
void operators_rank(struct analysis *a, const struct timeline *t) {
  if (!t->on_gpu || !t->has_compute || !has_operators(a, t->rank))
    return;
  struct rank_operators r = {.a = a,
                             .t = t,
                             .inside = memory_zeroed(size_sum(t->n_spans, 1), sizeof(*r.inside)),
                             .number = memory_zeroed(size_sum(t->n_spans, 1), sizeof(*r.number)),
                             .innermost =
                                 memory_zeroed(size_sum(t->n_lanes, 1), sizeof(*r.innermost))};
  for (u32 i = 0; i < t->n_spans; i++)
    if (!SPAN_ON_DEVICE(t->spans[i].kind))
      add_host_span(&r, i);
  for (u32 i = 0; i < t->n_spans; i++)
    if (is_counted_work(a, t, &t->spans[i]))
      add_gpu_work(&r, i);
  if (r.calls.n)
    count_sequences(&r);
  for (u32 i = 0; i < t->n_spans && r.sequences.list.n; i++)
    if (is_counted_work(a, t, &t->spans[i]))
      list_kernels(&r, &t->spans[i]);
  pthread_mutex_lock(&a->operator_sums->lock);
  merge(&r);
  pthread_mutex_unlock(&a->operator_sums->lock);
  FREE_EACH(&r, inside, number, calls.at);
  operator_sequences_free(&r.sequences);
  FREE_EACH(&r, innermost, by_name.at, seen.at);
  pairs_free(&r.pairs);
}

ORDER_BY(most_time_first, struct operator_result, DOWN(self_ms) DOWN(total_ms) BY_TEXT(name))

ORDER_BY(longest_first, struct operator_kernel_result,
         DOWN(sum_ms) BY_TEXT(launcher) BY_TEXT(kernel))

/* Operators that launched something, directly or through others. */
static void list_operators(struct analysis *a) {
  struct operator_sums *sums = a->operator_sums;
  struct results *r = a->results;
  i64 all = TOTAL(i64, sums->operators.at, sums->operators.n, one, one->self);
  r->operators = arena_array(a->arena, sums->operators.n, sizeof(*r->operators));
  FOR_EACH(sums->operators.at, sums->operators.n, sum) {
    if (sum->total <= 0)
      continue;
    struct operator_result *out = &r->operators[r->n_operators++];
    *out = (struct operator_result){.name = arena_text(a->arena, sum->name),
                                    .calls = sum->name ? (double)sum->calls : NAN,
                                    .kernels = (double)sum->kernels,
                                    .self_ms = ns_to_ms(sum->self),
                                    .total_ms = ns_to_ms(sum->total),
                                    .share = all > 0 ? (double)sum->self / (double)all : NAN};
  }
  SORT(r->operators, r->n_operators, most_time_first);
  r->n_operators = MIN(r->n_operators, LISTED);
}

static void list_pairs(struct analysis *a) {
  struct operator_sums *sums = a->operator_sums;
  struct results *r = a->results;
  r->operator_kernels = arena_array(a->arena, sums->pairs.list.n, sizeof(*r->operator_kernels));
  FOR_EACH(sums->pairs.list.at, sums->pairs.list.n, pair) {
    const char *launcher = sums->operators.at[pair->operator].name;
    unsigned category = category_of_work(pair->kernel, pair->kind);
    r->operator_kernels[r->n_operator_kernels++] = (struct operator_kernel_result){
        .launcher = arena_text(a->arena, launcher),
        .kernel = arena_text(a->arena, pair->kernel->demangled),
        .shortened = arena_text(a->arena, pair->kernel->shortened),
        .category = arena_text(a->arena, kernel_category_name(a->kernel_names, category)),
        .count = (double)pair->count,
        .sum_ms = ns_to_ms(pair->ns)};
  }
  SORT(r->operator_kernels, r->n_operator_kernels, longest_first);
  r->n_operator_kernels = MIN(r->n_operator_kernels, LISTED);
}

ORDER_BY(most_sequence_first, struct operator_sequence_result,
         DOWN(sum_ms) BY_TEXT(launcher) BY_TEXT(kernels))

/* "gemm → add ×3 → and 7 more". */
static char *describe_sequence(struct arena *arena, const struct operator_sequence *sequence) {
  u32 kept = MIN(sequence->n, SEQUENCE_KERNELS);
  char *words = arena_text(arena, "");
  for (u32 i = 0, row; i < kept; i += row) {
    const struct kernel *kernel = sequence->kernels[i];
    row = ROW_OF_EQUALS(&sequence->kernels[i], kept - i, first, one, *one == *first);
    char times[16] = "";
    if (row > 1)
      snprintf(times, sizeof(times), " ×%u", row);
    words = arena_list(arena, words, " → ", "%s%s", kernel ? kernel->shortened : "unknown", times);
  }
  return sequence->n > kept ? arena_printf(arena, "%s → and %u more", words, sequence->n - kept)
                            : words;
}

ORDER_BY(by_words, struct operator_sequence_result, BY_TEXT(launcher) BY_TEXT(kernels))

static void list_sequences(struct analysis *a) {
  struct operator_sums *sums = a->operator_sums;
  struct results *r = a->results;
  r->operator_sequences =
      arena_array(a->arena, sums->sequences.list.n, sizeof(*r->operator_sequences));
  FOR_EACH(sums->sequences.list.at, sums->sequences.list.n, one) {
    struct operator_sequence_result *out = &r->operator_sequences[r->n_operator_sequences++];
    *out = (struct operator_sequence_result){
        .launcher = arena_text(a->arena, sums->operators.at[one->operator].name),
        .kernels = describe_sequence(a->arena, one),
        .launched = one->n,
        .count = (double)one->count,
        .sum_ms = (double)one->ns}; /* whole, so that the order of adding does not matter */
  }
  /* Kernels with the same short name share one row. */
  r->n_operator_sequences = SORT_AND_JOIN(r->operator_sequences, r->n_operator_sequences, by_words,
                                          kept, more, ADD_EACH(kept, more, count, sum_ms));
  FOR_EACH_CHANGED(r->operator_sequences, r->n_operator_sequences, operator_sequence)
    operator_sequence->sum_ms /= 1e6;
  SORT(r->operator_sequences, r->n_operator_sequences, most_sequence_first);
  r->n_operator_sequences = MIN(r->n_operator_sequences, LISTED);
}

static void add_without_operators(struct operator_sums *sums, const struct kernel *kernel, u8 kind,
                                  i64 ns, u64 count) {
  add_operator(&sums->operators.at[NO_OPERATOR],
               &(struct operator_sum){.self = ns, .total = ns, .kernels = count});
  add_pair(sums, NO_OPERATOR,
           &(struct pair){.kernel = kernel, .kind = kind, .ns = ns, .count = count});
}

void operators_summarise(struct analysis *a) {
  struct operator_sums *sums = a->operator_sums;
  kernel_times_without_operators(a, add_without_operators);
  if (sums->operators.n == 1) {
    if (sums->operators.at[NO_OPERATOR].kernels)
      a->results->operators_reason =
          "the input does not record operators; traces of PyTorch's profiler do";
    return;
  }
  list_operators(a);
  list_pairs(a);
  list_sequences(a);
}
