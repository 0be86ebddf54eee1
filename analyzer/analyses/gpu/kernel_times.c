/* SPDX-License-Identifier: MIT
 *
 * What ran on the GPUs, by name and by category: kernels, communication, memcpys and memsets,
 * summed over the whole input and all ranks that know their kernels. If no rank knows them but
 * collectives were timed, the collectives are listed, without shares. The times of collectives are
 * kept longer than those of kernels: collectives beside which the kernels were overwritten are left
 * out.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/queries.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "base/vector.h"

/* All that ran under one name. */
struct sum {
  i64 ns, longest;
  u64 count;
  const struct kernel *kernel;
  i64 no_operators_ns; /* of it, on ranks of which no operators are recorded */
  u64 no_operators_count;
  u8 kind; /* of the span */
};

struct kernel_sums {
  pthread_mutex_t lock;
  VECTOR(struct sum) by_kernel; /* by kernel.number */
  struct kernel_names *own;     /* to be freed, NULL if they were given */
};

void kernel_times_prepare(struct analysis *a) {
  char why[128];
  struct kernel_sums *sums = a->kernel_sums = arena_alloc(a->arena, sizeof(*sums));
  pthread_mutex_init(&sums->lock, NULL);
  a->kernel_names = a->options->kernel_names;
  if (!a->kernel_names)
    a->kernel_names = sums->own = kernel_names_new(NULL, why, sizeof(why));
}

void kernel_times_free(struct analysis *a) {
  struct kernel_sums *sums = a->kernel_sums;
  kernel_names_free(sums->own);
  free(sums->by_kernel.at);
  pthread_mutex_destroy(&sums->lock);
}

/* Workers of a CPU backend run collectives too, on lanes that are not streams. */
static bool is_gpu_work(const struct analysis *a, const struct timeline *timeline,
                        const struct span *span) {
  if (span->kind != SPAN_COLLECTIVE)
    return SPAN_ON_DEVICE(span->kind);
  if (!timeline->on_gpu || span->link >= a->model->n_arrivals)
    return timeline->on_gpu;
  return a->model->arrivals[span->link].stream != TSCOPE_NO_STREAM;
}

bool is_counted_work(const struct analysis *a, const struct timeline *timeline,
                     const struct span *span) {
  return timeline->on_gpu && timeline->has_compute && SPAN_ON_DEVICE(span->kind) &&
         is_gpu_work(a, timeline, span) && span->start >= timeline->ring_begin;
}

static void sum_add(struct sum *sum, i64 ns, u64 count, i64 longest) {
  sum->ns += ns;
  sum->count += count;
  sum->longest = MAX(longest, sum->longest);
}

/* The index of the sum for a span's name; each kind of span without a name has its own. */
enum { NAMELESS = SPAN_COLLECTIVE - SPAN_KERNEL + 1 };
static u32 sum_index(const struct span *span) {
  return span->name ? span->name + NAMELESS : (u32)span->kind - SPAN_KERNEL;
}

static const char *name_of(const struct analysis *a, const struct timeline *timeline, u32 name,
                           u8 kind) {
  const char *text = name ? a->source.name(timeline, name) : NULL;
  return text && *text ? text : span_kinds[kind].nameless;
}

const struct kernel *kernel_of_span(const struct analysis *a, const struct timeline *timeline,
                                    const struct span *span) {
  return kernel_lookup(a->kernel_names, name_of(a, timeline, span->name, span->kind));
}

static void merge(struct analysis *a, const char *name, const struct sum *sum) {
  struct kernel_sums *sums = a->kernel_sums;
  const struct kernel *kernel = kernel_lookup(a->kernel_names, name);
  pthread_mutex_lock(&sums->lock);
  VECTOR_REACH(&sums->by_kernel, kernel->number);
  struct sum *all = &sums->by_kernel.at[kernel->number];
  if (!all->kernel) {
    all->kernel = kernel;
    all->kind = sum->kind;
  }
  sum_add(all, sum->ns, sum->count, sum->longest);
  all->no_operators_ns += sum->no_operators_ns;
  all->no_operators_count += sum->no_operators_count;

  pthread_mutex_unlock(&sums->lock);
}

static void carry_sum_members(struct carrier *c, struct sum *sum) {
  CARRY_EACH(c, sum, kind, ns, longest, count, no_operators_ns, no_operators_count);
}

/* A name ends with its sum; no name ends the list. */
void kernel_times_carry(struct analysis *a, u32 rank, struct carrier *c) {
  const char *name = NULL;
  (void)rank;
  if (!c->reads) {
    CARRY(c, &name);
    return;
  }
  for (;;) {
    struct sum sum = {0};
    CARRY(c, &name);
    if (!name)
      break;
    carry_sum_members(c, &sum);
    if (!c->bad)
      merge(a, name, &sum);
  }
}

static bool any_kernels(const struct model *model) {
  return ANY(model->ranks, model->n_ranks, one, one->gpu_kernels);
}

void kernel_times_rank(struct analysis *a, const struct timeline *timeline) {
  SCOPED VECTOR(struct sum) by_name = {0};
  bool counts = timeline->has_compute || !any_kernels(a->model);
  i64 begin = timeline->on_gpu && timeline->has_compute ? timeline->ring_begin : NS_UNKNOWN;
  bool no_operators =
      timeline->on_gpu && timeline->has_compute && !has_operators(a, timeline->rank);
  struct carrier *keeps = analysis_keeps(a, timeline->rank);
  FOR_EACH(timeline->spans, timeline->n_spans, span) {
    if (!is_gpu_work(a, timeline, span))
      continue;
    if (span->kind == SPAN_COLLECTIVE) {
      a->ranks[timeline->rank].collective_kernels++;
      a->ranks[timeline->rank].collective_kernels_called += span->link != INDEX_NONE;
    }
    if (!counts || span->start < begin)
      continue;
    u32 place = sum_index(span);
    VECTOR_REACH(&by_name, place);
    struct sum *sum = &by_name.at[place];
    sum->kind = span->kind;
    sum_add(sum, span->end - span->start, 1, span->end - span->start);
  }
  for (u32 i = 0; i < by_name.n; i++) {
    struct sum *sum = &by_name.at[i];
    sum->no_operators_ns = no_operators ? sum->ns : 0;
    sum->no_operators_count = no_operators ? sum->count : 0;
    if (sum->count == 0)
      continue;
    const char *name = name_of(a, timeline, i < NAMELESS ? 0 : i - NAMELESS, sum->kind);
    merge(a, name, sum);
    if (keeps) {
      CARRY(keeps, &name);
      carry_sum_members(keeps, sum);
    }
  }
}

void kernel_times_without_operators(struct analysis *a, void (*add)(struct operator_sums *sums,
                                                                    const struct kernel *kernel,
                                                                    u8 kind, i64 ns, u64 count)) {
  FOR_EACH(a->kernel_sums->by_kernel.at, a->kernel_sums->by_kernel.n, sum)
    if (sum->no_operators_count)
      add(a->operator_sums, sum->kernel, sum->kind, sum->no_operators_ns, sum->no_operators_count);
}

unsigned category_of_work(const struct kernel *kernel, u8 span_kind) {
  switch (span_kind) {
  case SPAN_MEMCPY:
    return KERNEL_MEMCPY;
  case SPAN_MEMSET:
    return KERNEL_MEMSET;
  case SPAN_COLLECTIVE:
    return kernel->category == KERNEL_COMPUTING_COMMUNICATION ? KERNEL_COMPUTING_COMMUNICATION
                                                              : KERNEL_COMMUNICATION;
  default:
    return kernel->category;
  }
}

const struct kernel_category_result *find_category(const struct results *r,
                                                   enum kernel_category kind) {
  return FIND(r->kernel_categories, r->n_kernel_categories, one, one->kind == kind);
}

static unsigned category_of(const struct sum *sum) {
  return category_of_work(sum->kernel, sum->kind);
}

ORDER_BY(longer_first, struct sum, DOWN(ns) BY_TEXT(kernel->raw))

ORDER_BY(more_first, struct kernel_category_result, DOWN(sum_ms) BY_TEXT(category))

static void list_categories(struct analysis *a, const struct sum *sums, u32 n, double total_ms) {
  struct results *r = a->results;
  unsigned categories = kernel_category_count(a->kernel_names);
  r->kernel_categories = arena_array(a->arena, categories, sizeof(*r->kernel_categories));
  SCOPED i64 *ns = memory_zeroed(categories, sizeof(*ns));
  SCOPED u64 *count = memory_zeroed(categories, sizeof(*count));
  FOR_EACH(sums, n, sum) {
    ns[category_of(sum)] += sum->ns;
    count[category_of(sum)] += sum->count;
  }
  for (unsigned i = 0; i < categories; i++) {
    if (!count[i])
      continue;
    double ms = ns_to_ms(ns[i]);
    const char *name = arena_text(a->arena, kernel_category_name(a->kernel_names, i));
    r->kernel_categories[r->n_kernel_categories++] = (struct kernel_category_result){
        name, (double)count[i], ms, total_ms > 0 ? ms / total_ms : NAN, i};
  }
  SORT(r->kernel_categories, r->n_kernel_categories, more_first);
}

static void list_kernels(struct analysis *a, const struct sum *sums, u32 n, double total_ms) {
  struct results *r = a->results;
  u32 most = MAX(a->options->top, KERNELS_LISTED);
  n = MIN(n, most);
  r->kernels = arena_array(a->arena, n, sizeof(*r->kernels));
  FOR_EACH(sums, n, sum) {
    double ms = ns_to_ms(sum->ns);
    struct kernel_result *one = &r->kernels[r->n_kernels++];
    *one = (struct kernel_result){
        .name = arena_text(a->arena, sum->kernel->demangled),
        .shortened = arena_text(a->arena, sum->kernel->shortened),
        .category = arena_text(a->arena, kernel_category_name(a->kernel_names, category_of(sum))),
        .count = (double)sum->count,
        .sum_ms = ms,
        .mean_ms = ms / (double)sum->count,
        .max_ms = ns_to_ms(sum->longest),
        .share = total_ms > 0 ? ms / total_ms : NAN,
        .kind = category_of(sum)};
  }
}

static const char *why_only_collectives(const struct analysis *a) {
  const struct rank *rank =
      FIND(a->model->ranks, a->model->n_ranks, one, gpu_timing_reason(a->model, one));
  const char *why = rank ? gpu_timing_reason(a->model, rank) : NULL;
  return say(a, "ONLY COLLECTIVES WERE TIMED, no other kernel%s", say_why(a, why));
}

void kernel_times_summarise(struct analysis *a) {
  struct kernel_sums *sums = a->kernel_sums;
  u32 n = KEEP_WHERE(sums->by_kernel.at, sums->by_kernel.n, one, one->count);
  i64 total = TOTAL(i64, sums->by_kernel.at, n, one, one->ns);
  sums->by_kernel.n = n;
  if (n == 0) {
    a->results->kernels_reason = gpu_timing_why_nothing(a);
    return;
  }
  a->results->kernel_names = n;
  u32 ranks = NUMBER_OF(a->ranks, a->model->n_ranks, one, one->on_gpu && one->has_compute);
  a->results->kernels_seen = gpu_share_known(a, false);
  a->results->kernels_ranks = ranks;
  if (ANY(a->ranks, a->model->n_ranks, one, rank_lacks_times(one)))
    a->results->kernels_note = "SOME COLLECTIVES ARE MISSING: they ran in CUDA graphs that CUPTI "
                               "reported as a whole, or their records were dropped";
  if (ranks == 0) {
    total = 0; /* of which shares would be */
    a->results->kernels_reason = why_only_collectives(a);
  }
  SORT(sums->by_kernel.at, n, longer_first);
  list_categories(a, sums->by_kernel.at, n, ns_to_ms(total));
  list_kernels(a, sums->by_kernel.at, n, ns_to_ms(total));
}
