/* SPDX-License-Identifier: MIT
 *
 * What the GPU did is known for some of the steps only: the ring no longer has the others, or
 * CUPTI rested. All steps are alike, so each figure is what it is where all are known.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse_cluster.h"
#include "analyses/steps/step_kernels.h"
#include "base/intervals.h"
#include "model/span_call_sites.h"

enum { RANKS = 8, STEPS = 50, KEPT_FROM = 30 };

/* Launches are at line 10, collectives at 20, waits at 30 of the program. */
static void give_lines(struct cluster *c) {
  static struct call_frame frames[] = {{.file = "/home/me/train.py", .line = 10},
                                       {.file = "/home/me/train.py", .line = 20},
                                       {.file = "/home/me/train.py", .line = 30}};
  static const u32 numbers[] = {0, 1, 2};
  static struct call_stack stacks[] = {{numbers, 1, 0}, {numbers + 1, 1, 0}, {numbers + 2, 1, 0}};
  static struct call_site of_stacks[] = {
      {.weight = 1}, {.stack = 1, .weight = 1}, {.stack = 2, .weight = 1}};
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = (struct call_sites){.frames = frames,
                                 .n_frames = LENGTH_OF(frames),
                                 .stacks = stacks,
                                 .n_stacks = LENGTH_OF(stacks),
                                 .sites = of_stacks,
                                 .n_sites = LENGTH_OF(of_stacks),
                                 .of_span = arena_array(&c->arena, t->n_spans, sizeof(u32))};
    for (u32 i = 0; i < t->n_spans; i++) {
      u8 kind = t->spans[i].kind;
      sites->of_span[i] = kind == SPAN_LAUNCH      ? 0
                          : kind == SPAN_COLL_CALL ? 1
                          : kind == SPAN_SYNC      ? 2
                                                   : INDEX_NONE;
    }
    t->call_sites = sites;
  }
}

/* Every kernel of the forward pass is attention, every other one a GEMM. */
static void give_arithmetic(struct cluster *c) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct timeline *t = &c->timelines[r];
    t->arithmetic = arena_array(&c->arena, t->n_spans, sizeof(*t->arithmetic));
    for (u32 i = 0, n = 0; i < t->n_spans; i++)
      if (t->spans[i].kind == SPAN_LAUNCH)
        t->arithmetic[t->n_arithmetic++] = (struct arithmetic){.start = t->spans[i].start,
                                                               .end = t->spans[i].end,
                                                               .flops = 3000000000000ull,
                                                               .what = INDEX_NONE,
                                                               .estimate = n++ % 3 == 0};
  }
}

static struct cluster *new_cluster(void) {
  struct cluster_options o = healthy_gpu();
  o.steps = STEPS;
  struct cluster *c = cluster_new(&o);
  give_lines(c);
  give_arithmetic(c);
  return c;
}

static i64 begin_of(const struct cluster *c, u32 rank, u32 step) {
  return step < STEPS ? c->model.steps.begin[step * c->model.n_ranks + rank]
                      : c->model.ranks[rank].end;
}

static void hide(struct cluster *c, u32 rank, u32 kinds, i64 from, i64 until) {
  struct timeline *t = &c->timelines[rank];
  for (u32 i = 0; i < t->n_spans; i++) {
    struct span *span = &t->spans[i];
    if (!(kinds >> span->kind & 1) || span->start < from || span->start >= until)
      continue;
    *span = (struct span){.start = span->start,
                          .end = span->start,
                          .link = INDEX_NONE,
                          .launch = INDEX_NONE,
                          .kind = SPAN_PHASE,
                          .category = TSCOPE_PHASE_USER};
    t->call_sites->of_span[i] = INDEX_NONE;
  }
  t->n_edges = 0;
  t->compute.n =
      KEEP_WHERE(t->compute.at, t->compute.n, one, one->start < from || one->start >= until);
}

/* Launches, waits for the GPU and its work are in the ring; collectives and phases are kept.
 * Each rank has one step less than the one before. */
static void overwrite(struct cluster *c) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    i64 begin = begin_of(c, r, KEPT_FROM + r);
    hide(c, r, 1u << SPAN_LAUNCH | 1u << SPAN_SYNC | 1u << SPAN_KERNEL, 0, begin);
    u32 n = 0;
    struct timeline *t = &c->timelines[r];
    for (u32 i = 0; i < t->n_arithmetic; i++)
      if (t->arithmetic[i].start >= begin)
        t->arithmetic[n++] = t->arithmetic[i];
    t->n_arithmetic = n;
    t->ring_begin = begin;
  }
}

/* Of 50 steps, CUPTI watches ten from 20 on. */
static void rest(struct cluster *c) {
  enum { FROM = 20, UNTIL = 30 };
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct rank *rank = &c->model.ranks[r];
    i64 from = begin_of(c, r, FROM), until = begin_of(c, r, UNTIL);
    u32 device = 1u << SPAN_KERNEL | 1u << SPAN_COLLECTIVE;
    hide(c, r, device, 0, from);
    hide(c, r, device, until, INT64_MAX);
    rank->gpu_windows = arena_array(&c->arena, 3, sizeof(*rank->gpu_windows));
    rank->gpu_windows[0] =
        (struct gpu_window){.start = INT64_MIN + 1, .end = from, .clock = TSCOPE_GPU_CLOCK_HOST};
    rank->gpu_windows[1] = (struct gpu_window){
        .start = from, .end = until, .settled = from, .clock = TSCOPE_GPU_CLOCK_CUPTI};
    rank->gpu_windows[2] =
        (struct gpu_window){.start = until, .end = INT64_MAX, .clock = TSCOPE_GPU_CLOCK_HOST};
    rank->n_gpu_windows = 3;
  }
}

static void assert_same(double value, double wanted) {
  assert_near(value, wanted, 1e-3 * fabs(wanted) + 1e-9);
}

static struct more_kernels kernels_in_step(const struct results *r, u32 step) {
  bool them[STEPS] = {false};
  them[step] = true;
  return find_more_kernels(r->analysis, them, 1, INDEX_NONE);
}

static void overwritten_kernels_are_not_none(void **state) {
  (void)state;
  struct cluster *c = new_cluster();
  overwrite(c);
  struct results *r = cluster_analyse(c, NULL);
  struct more_kernels kept = kernels_in_step(r, 45);
  assert_true(kept.usual == 3 && kept.in_them == 3);
  assert_true(isnan(kernels_in_step(r, 10).in_them));
  cluster_end(r, c);
}

static void arithmetic_is_of_the_steps_that_are_known(void **state) {
  static void (*const unknown[])(struct cluster *) = {overwrite, rest};
  struct analyse_options options = no_options();
  (void)state;
  options.peak_tflops = 100;
  struct cluster *whole = new_cluster();
  struct results *wanted = cluster_analyse(whole, &options);
  assert_true(wanted->hfu > 0 && wanted->hfu_attention > 0 && wanted->mfu > 0);
  for (u32 i = 0; i < LENGTH_OF(unknown); i++) {
    struct cluster *c = new_cluster();
    unknown[i](c);
    struct results *r = cluster_analyse(c, &options);
    assert_same(r->hfu, wanted->hfu);
    assert_same(r->hfu_attention, wanted->hfu_attention);
    assert_same(r->mfu, wanted->mfu);
    cluster_end(r, c);
  }
  cluster_end(wanted, whole);
}

/* GEMMs are known by their calls; whether attention ran is not known. */
static void without_a_watched_step_gemms_are_known(void **state) {
  (void)state;
  struct analyse_options options = no_options();
  options.peak_tflops = 100;
  struct cluster *whole = new_cluster(), *c = new_cluster();
  struct results *wanted = cluster_analyse(whole, &options);
  rest(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].gpu_windows[1].settled = INT64_MAX;
  struct results *r = cluster_analyse(c, &options);
  assert_same(r->hfu, wanted->hfu);
  assert_true(isnan(r->hfu_attention));
  cluster_end(r, c);
  cluster_end(wanted, whole);
}

static const struct line_result *line_at(const struct results *r, u32 line) {
  return FIND(r->lines.at, r->lines.n_at, one, one->line == line);
}

static void lines_are_of_the_steps_that_are_known(void **state) {
  static void (*const unknown[])(struct cluster *) = {overwrite, rest};
  (void)state;
  struct cluster *whole = new_cluster();
  struct results *wanted = cluster_analyse(whole, NULL);
  for (u32 i = 0; i < LENGTH_OF(unknown); i++) {
    struct cluster *c = new_cluster();
    unknown[i](c);
    struct results *r = cluster_analyse(c, NULL);
    assert_same(r->ov_exposed_ms, wanted->ov_exposed_ms);
    for (u32 line = 10; line <= 30; line += 10) {
      const struct line_result *one = line_at(r, line), *other = line_at(wanted, line);
      assert_same(one->waits, other->waits);
      assert_same(one->wait_ms, other->wait_ms);
      /* nothing is launched after the last wait */
      assert_near(one->idle_ms, other->idle_ms, other->idle_ms / (STEPS - KEPT_FROM - RANKS));
      assert_same(one->collectives, other->collectives);
      assert_same(one->comm_ms, other->comm_ms);
      assert_same(one->exposed_ms, other->exposed_ms);
      assert_same(one->launches, other->launches);
      assert_same(one->gpu_ms, other->gpu_ms);
    }
    assert_same(line_at(r, 20)->exposed_ms, r->ov_exposed_ms);
    cluster_end(r, c);
  }
  cluster_end(wanted, whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overwritten_kernels_are_not_none),
      cmocka_unit_test(arithmetic_is_of_the_steps_that_are_known),
      cmocka_unit_test(without_a_watched_step_gemms_are_known),
      cmocka_unit_test(lines_are_of_the_steps_that_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
