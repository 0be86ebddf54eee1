/* SPDX-License-Identifier: MIT
 *
 * How much arithmetic the devices did, as far as calls tell it: matrix products exactly, attention
 * by an estimate from its grid. And the share of GPU compute time that this covers: what runs
 * beside is unknown, never taken for nothing.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "kernels.h"
#include "vector.h"

struct counting {
  struct analysis *a;
  const struct timeline *timeline;
  struct rank_flops *sum;
  i64 *ran; /* [n_arithmetic] start of the first kernel of that call, NS_UNKNOWN if none was seen */
  struct window window; /* that an instant was last found in, and whether it counts */
  bool counts;
  VECTOR(u8) is_product; /* by name of kernel: 0 not looked at, 1 no, 2 a matrix product */
};

/* Whether an instant lies in the steps looked at, and its kernels were not overwritten. Instants
 * mostly come in order, so the step of one is the step of the next. */
static bool is_looked_at(struct counting *c, i64 time) {
  const struct analysis *a = c->a;
  const struct timeline *t = c->timeline;
  if (time >= c->window.begin && time < c->window.end)
    return c->counts;
  struct window window;
  i32 step = a->whole_run ? 0 : analysis_step_at(a, t->rank, time);
  if (step < (i32)a->first_step || !analysis_window(a, t->rank, (u32)step, &window) ||
      time < window.begin || time >= window.end)
    return false;
  bool overwritten = t->detail_begin != NS_UNKNOWN && window.begin < t->detail_begin;
  c->window = window;
  c->counts = a->whole_run || !overwritten;
  return c->counts;
}

/* The call that a span of the host lies in. */
static u32 find_call(const struct timeline *t, const struct span *host) {
  u32 low = 0, high = t->n_arithmetic;
  while (low < high) { /* the first behind it */
    u32 middle = low + (high - low) / 2;
    const struct arithmetic *call = &t->arithmetic[middle];
    if (call->lane < host->lane || (call->lane == host->lane && call->start <= host->start))
      low = middle + 1;
    else
      high = middle;
  }
  const struct arithmetic *call = low ? &t->arithmetic[low - 1] : NULL;
  return call && call->lane == host->lane && host->start <= call->end ? low - 1 : INDEX_NONE;
}

static int note_product(struct counting *c, u32 name, bool *is) {
  if (!VECTOR_REACH(&c->is_product, name))
    return -ENOMEM;
  u8 *known = &c->is_product.at[name];
  if (!*known) {
    const char *text = name ? c->a->source.name(c->timeline, name) : NULL;
    *known = kernel_category(c->a->kernel_names, text) == KERNEL_GEMM ? 2 : 1;
  }
  *is = *known == 2;
  return 0;
}

static int count_kernel(struct counting *c, const struct span *span) {
  const struct timeline *t = c->timeline;
  u32 at = span->launch == INDEX_NONE ? INDEX_NONE : find_call(t, &t->spans[span->launch]);
  const struct arithmetic *call = at == INDEX_NONE ? NULL : &t->arithmetic[at];
  if (call && c->ran[at] == NS_UNKNOWN)
    c->ran[at] = span->start;
  if (!is_looked_at(c, span->start))
    return 0;
  i64 ns = span->end - span->start;
  bool is_product, known = call && !call->captured && call->flops != ARITHMETIC_UNKNOWN;
  int error = note_product(c, span->name, &is_product);
  c->sum->kernel_ns += ns;
  c->sum->kernels++;
  c->sum->launched += span->launch != INDEX_NONE;
  if (known && call->estimate)
    c->sum->estimated_ns += ns;
  else if (known)
    c->sum->known_ns += ns;
  if (!error && is_product) {
    c->sum->product_ns += ns;
    if (known)
      c->sum->product_known_ns += ns;
  }
  return error;
}

static void count_calls(struct counting *c) {
  const struct timeline *t = c->timeline;
  for (u32 i = 0; i < t->n_arithmetic; i++) {
    const struct arithmetic *call = &t->arithmetic[i];
    if (call->estimate && c->ran[i] == NS_UNKNOWN)
      continue;
    if (!is_looked_at(c, c->ran[i] == NS_UNKNOWN ? call->start : c->ran[i]))
      continue;
    if (call->estimate) {
      c->sum->estimated += (double)call->flops;
      continue;
    }
    c->sum->products++;
    if (call->captured)
      c->sum->captured++;
    else if (call->flops == ARITHMETIC_UNKNOWN)
      c->sum->unknown++;
    else
      c->sum->flops += (double)call->flops;
  }
}

static i64 time_looked_at(struct counting *c) {
  const struct analysis *a = c->a;
  i64 sum = 0;
  for (u32 i = 0; i < a->n_steps; i++) {
    struct window window;
    if (analysis_window(a, c->timeline->rank, a->first_step + i, &window) &&
        is_looked_at(c, window.begin))
      sum += window.end - window.begin;
  }
  return sum;
}

int flops_rank(struct analysis *a, const struct timeline *timeline) {
  struct counting c = {.a = a,
                       .timeline = timeline,
                       .sum = &a->ranks[timeline->rank].flops,
                       .ran = malloc((timeline->n_arithmetic + 1u) * sizeof(i64))};
  int error = c.ran ? 0 : -ENOMEM;
  a->ranks[timeline->rank].graph_launches = timeline->graph_launches;
  a->ranks[timeline->rank].graph_launches_run = timeline->graph_launches_run;
  for (u32 i = 0; !error && i < timeline->n_arithmetic; i++)
    c.ran[i] = NS_UNKNOWN;
  for (u32 i = 0; !error && i < timeline->n_spans; i++)
    if (timeline->spans[i].kind == SPAN_KERNEL)
      error = count_kernel(&c, &timeline->spans[i]);
  if (!error) {
    count_calls(&c);
    c.sum->wall_ns = time_looked_at(&c);
  }
  free(c.ran);
  free(c.is_product.at);
  return error;
}

struct rank_flops flops_all(const struct analysis *a, bool only_products) {
  struct rank_flops all = {0};
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_flops *one = &a->ranks[i].flops;
    if (only_products && !one->products)
      continue;
    all.flops += one->flops;
    all.estimated += one->estimated;
    all.wall_ns += one->wall_ns;
    all.kernel_ns += one->kernel_ns;
    all.known_ns += one->known_ns;
    all.estimated_ns += one->estimated_ns;
    all.product_ns += one->product_ns;
    all.product_known_ns += one->product_known_ns;
    all.kernels += one->kernels;
    all.launched += one->launched;
    all.products += one->products;
    all.captured += one->captured;
    all.unknown += one->unknown;
  }
  return all;
}
