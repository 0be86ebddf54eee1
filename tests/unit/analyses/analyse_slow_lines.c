/* SPDX-License-Identifier: MIT
 *
 * Which line makes a straggler late, by how much, and what is no reason.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "analyse_cluster.h"
#include "analyses/lines/lines.h"
#include "analyses/lines/sampled_parts.h"
#include "base/checked_memory.h"
#include "model/span_call_sites.h"
#include "sampled_cluster.h"

/* Rank 2 is slow for 120 ms in these steps, of which it is `other` at line 40. */
static void sample_apart(struct cluster *c, u32 from, u32 until, i64 other, i64 apart, u32 seed) {
  u32 n = c->model.n_ranks;
  i64 *slow = arena_array(&c->arena, c->model.steps.n * n, sizeof(*slow));
  for (u32 s = from; s < until; s++)
    slow[s * n + 2] = 120 * MS;
  cluster_sample(c, slow, other, apart, seed);
}

static void sample_lines(struct cluster *c, u32 from, u32 until, i64 other) {
  sample_apart(c, from, until, other, 10 * MS, 0);
}

/* All looks tell where rank 2 is slow. */
static struct cluster *slow_at_line(double slow, i64 other) {
  struct cluster_options o = healthy_cpu();
  o.slow[2] = slow;
  struct cluster *c = cluster_new(&o);
  sample_lines(c, 0, o.steps, other);
  return c;
}

/* Of 1000 looks at rank 1, 250 were not made: the report says so, and why. */
static void fewer_looks_are_said(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  struct cluster *c = cluster_new(&o);
  sample_lines(c, 0, 0, 0);
  for (u32 r = 0; r < o.ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = *c->timelines[r].call_sites;
    sites->fewer =
        r == 1 ? (struct fewer_looks){.wanted = 1000, .missed = 250, .slowest_us = 40000}
               : (struct fewer_looks){.wanted = 1000 / (o.ranks - 1.0), .slowest_us = 10000};
    c->timelines[r].call_sites = sites;
  }
  struct results *r = cluster_analyse(c, NULL);
  const struct coverage *looks = NULL;
  for (u32 i = 0; i < r->n_coverage; i++)
    if (!strcmp(r->coverage[i].name, "looks at lines"))
      looks = &r->coverage[i];
  assert_non_null(looks);
  assert_true(fabs(looks->share - 0.875) < 1e-9);
  assert_non_null(strstr(looks->note, "CPU time"));
  assert_non_null(strstr(looks->note, "rank 1 it was down to one each 40.0 ms"));
  cluster_end(r, c);
}

static void line_is_named(void **state) {
  (void)state;
  for (u32 part = 0; part <= 1; part++) {
    struct cluster_options o = healthy_cpu();
    o.slow[2] = 0.4;
    o.slow_from = part ? 10 : 0;
    o.slow_until = part ? 30 : 0;
    struct cluster *c = cluster_new(&o);
    sample_lines(c, o.slow_from, part ? o.slow_until : o.steps, 0);
    struct results *r = cluster_analyse(c, NULL);
    const struct rank_result *rank = &r->ranks[2];
    assert_true(rank->straggler);
    assert_non_null(rank->late_at);
    assert_non_null(strstr(rank->late_at, "train.py:20"));
    assert_string_equal(rank->late_activity, "sleeping");
    assert_true(fabs(rank->late_more_ms - 120) < 12);
    assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->title, "train.py:20"));
    cluster_end(r, c);
  }
}

/* Of 120 ms two lines take 70 and 50: the larger is named, and the other beside it. */
static void second_line_is_told(void **state) {
  (void)state;
  struct cluster *c = slow_at_line(0.4, 50 * MS);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *straggler = finding_of(r, "DIST.STRAGGLER");
  assert_non_null(strstr(straggler->title, "train.py:20"));
  assert_non_null(strstr(straggler->evidence, " Another 50.0 ms are at "));
  assert_non_null(strstr(straggler->evidence, "train.py:40 (check)"));
  cluster_end(r, c);
}

/* Two lines take 85 and 35 of the 120 ms by which the rank is late. Looks are rare; how late it is
 * is known better: that is shared between both. */
static void two_lines_share_the_delay(void **state) {
  u32 found = 0;
  (void)state;
  for (u32 seed = 1; seed <= 20; seed++) {
    struct cluster_options o = healthy_cpu();
    o.seed = seed;
    o.noise = 0.02;
    o.slow[2] = 0.4; /* of 300 ms */
    struct cluster *c = cluster_new(&o);
    sample_apart(c, 0, o.steps, 35 * MS, 200 * MS, seed);
    struct results *r = cluster_analyse(c, NULL);
    const struct sampled_line *line = r->ranks[2].slow_line;
    assert_non_null(line);
    double next = line->next ? line->next_ms : 0; /* if it was seen often enough */
    found += line->next != NULL;
    if (fabs(line->more_ms + next - 120) > 24)
      fail_msg("seed %u: %g and %g ms", seed, line->more_ms, next);
    cluster_end(r, c);
  }
  assert_true(found >= 10);
}

/* All ranks are at line 20 for 300 ms, called at line 10, and rank 2 for 120 ms more, called at
 * line 40: that is where to look. */
static void the_call_that_differs_is_told(void **state) {
  (void)state;
  struct cluster *c = slow_at_line(0.4, 0);
  cluster_call_twice(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct rank_result *rank = &r->ranks[2];
  assert_true(rank->straggler && rank->late_path);
  assert_non_null(strstr(rank->late_at, "train.py:20"));
  assert_non_null(strstr(rank->late_path, "train.py:40"));
  assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->evidence, "train.py:40"));
  cluster_end(r, c);
}

/* In the input, of 150 ms, nothing is seen but a line, for 10 ms in each step or in every fifth. */
static bool names_input_line(u32 each) {
  struct cluster_options o = healthy_cpu();
  o.input = 150 * MS;
  struct cluster *c = cluster_new(&o);
  i64 *at = arena_array(&c->arena, o.steps * o.ranks, sizeof(*at));
  for (u32 i = 0; i < o.steps * o.ranks; i++)
    at[i] = i / o.ranks % each ? 0 : 10 * MS;
  cluster_sample(c, at, 0, 10 * MS, 0);
  c->model.phases = arena_array(&c->arena, o.steps * o.ranks, sizeof(*c->model.phases));
  for (u32 i = 0; i < o.steps * o.ranks; i++)
    c->model.phases[i] = (struct phase_times){.data = o.input};
  for (u32 r = 0; r < o.ranks; r++) {
    struct call_sites *sites = (struct call_sites *)c->timelines[r].call_sites;
    u32 kept = 0, step = 0;
    for (u32 i = 0; i < sites->n_samples; i++) {
      while (sites->samples[i].time >= c->model.steps.end[step * o.ranks + r])
        step++;
      if (sites->samples[i].stack == 1 ||
          sites->samples[i].time >= c->model.steps.begin[step * o.ranks + r] + o.input)
        sites->samples[kept++] = sites->samples[i];
    }
    sites->n_samples = kept;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_non_null(finding_of(r, "TIMING.DATALOADER_BOUND"));
  bool named = r->ranks[0].input_line != NULL;
  cluster_end(r, c);
  return named;
}

static void a_line_that_takes_little_of_the_input_is_not_told(void **state) {
  (void)state;
  assert_true(names_input_line(1));
  assert_false(names_input_line(5));
}

/* The input of rank 2 is slow at a line at which its peers never are, not for want of workers. */
static void a_line_of_slow_input_comes_first(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.extra_input[2] = 120 * MS;
  struct cluster *c = cluster_new(&o);
  sample_lines(c, 0, o.steps, 0);
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  assert_true(found && r->ranks[2].reason == STRAGGLER_SLOW_INPUT);
  assert_ptr_equal(strstr(found->action, "Look at me/train.py:20 (log) first"), found->action);
  cluster_end(r, c);
}

/* Ranks 1 and 2 are slow alike, each at a line of its own: both are told. */
static void each_of_a_group_has_its_own_line(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.slow[1] = o.slow[2] = 0.4;
  struct cluster *c = cluster_new(&o);
  i64 *late = arena_array(&c->arena, o.steps * o.ranks, sizeof(*late));
  for (u32 s = 0; s < o.steps; s++)
    late[s * o.ranks + 1] = late[s * o.ranks + 2] = 120 * MS;
  cluster_sample(c, late, 0, 10 * MS, 0);
  for (u32 r = 0; r < o.ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    struct call_frame *frames = arena_array(&c->arena, 4, sizeof(*frames));
    *sites = *c->timelines[r].call_sites;
    memcpy(frames, sites->frames, 4 * sizeof(*frames));
    frames[1].line = 200 + r;
    sites->frames = frames;
    c->timelines[r].call_sites = sites;
  }
  struct results *r = cluster_analyse(c, NULL);
  const struct finding *found = finding_of(r, "DIST.STRAGGLER");
  assert_true(found && found->n_ranks == 2);
  assert_non_null(strstr(found->title, "train.py:201 and at me/train.py:202"));
  assert_non_null(strstr(found->evidence, " Rank 2 takes 120 ms longer at me/train.py:202 (log)."));
  cluster_end(r, c);
}

/* Line 10 is another one on each rank, and calls a pipeline's schedule. */
static void call_schedule(struct cluster *c) {
  cluster_call_library(c, 0, "torch/distributed/pipelining/schedules.py",
                       "ScheduleGPipe._step_microbatches");
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->timelines[r].call_sites->frames[0].line = 110 + r;
}

/* Each rank calls its schedule at a line at which its peers are never, for 300 ms; that is not why
 * rank 2 is slow. */
static void lines_that_call_schedules_are_compared(void **state) {
  (void)state;
  struct cluster *c = slow_at_line(0.4, 0);
  call_schedule(c);
  struct results *r = cluster_analyse(c, NULL);
  const struct rank_result *rank = &r->ranks[2];
  assert_true(rank->straggler && rank->late_at);
  assert_non_null(strstr(rank->late_at, "train.py:20"));
  for (u32 i = 0; i < r->n_ranks; i++)
    assert_true(i == 2 || !r->ranks[i].slow_line);
  cluster_end(r, c);
}

/* Rank 2 waits at its slow line for another thread, which is at line 40. On the peers that thread
 * is there too, while they wait in collectives: no thread of theirs makes them wait. */
static void the_other_thread_is_named(void **state) {
  (void)state;
  struct cluster *c = slow_at_line(0.4, 0);
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    const struct call_sites *sites = c->timelines[r].call_sites;
    u32 where = r == 2 ? 1 : 2, since = 0; /* its slow line, or where the others wait */
    for (u32 i = 0; i < sites->n_samples; i++) {
      struct line_sample *sample = &sites->samples[i];
      if (r == 2 && sample->stack == where)
        sample->activity = TSCOPE_ACTIVITY_LOCK;
      since = sample->stack == where ? since + 1 : 0;
      if (since == 5)
        *sample = (struct line_sample){.time = sample->time,
                                       .represented_ns = 100 * MS,
                                       .interval_ns = 100 * MS,
                                       .activity = TSCOPE_ACTIVITY_SLEEP,
                                       .stack = 3,
                                       .beside = true};
    }
  }
  struct results *r = cluster_analyse(c, NULL);
  const struct sampled_line *line = r->ranks[2].slow_line;
  assert_true(r->ranks[2].straggler && line && line->beside);
  assert_non_null(strstr(line->beside, "train.py:40"));
  assert_non_null(strstr(finding_of(r, "DIST.STRAGGLER")->action, "what another thread does"));
  cluster_end(r, c);
}

/* All that any rank does is at one line, without a core in each look. Of each second of CPU time
 * rank 2's threads waited `own`, its peers' one second. */
static void compute_without_cores(struct cluster *c, double own) {
  const struct steps *steps = &c->model.steps;
  u32 n = c->model.n_ranks;
  sample_lines(c, 0, 0, 0);
  for (u32 r = 0; r < n; r++) {
    const struct call_sites *sites = c->timelines[r].call_sites;
    for (u32 i = 0; i < sites->n_samples; i++) {
      sites->samples[i].stack = 0;
      sites->samples[i].activity = TSCOPE_ACTIVITY_NO_CORE;
    }
    i64 begin = steps->begin[r], end = steps->end[(steps->n - 1) * n + r];
    u64 compute_ns = (u64)(steps->n * (r == 2 ? 420 : 300)) * MS;
    double waits = r == 2 ? own : 1;
    struct rank_look *looks = arena_array(&c->arena, 2, sizeof(*looks));
    looks[0] = (struct rank_look){.time = begin};
    looks[1] = (struct rank_look){.time = end,
                                  .cpu_ns = (u64)((double)compute_ns / (1 + waits)),
                                  .wait_ns = (u64)((double)compute_ns * waits / (1 + waits))};
    c->model.ranks[r].looks = looks;
    c->model.ranks[r].n_looks = 2;
  }
}

/* A rank that has more to do also waits longer for a core. Only one that waits longer than its
 * peers for each second of CPU time lacks cores. */
static void more_work_is_no_lack_of_cores(void **state) {
  (void)state;
  for (u32 lacks = 0; lacks <= 1; lacks++) {
    struct cluster_options o = healthy_cpu();
    o.slow[2] = 0.4;
    struct cluster *c = cluster_new(&o);
    compute_without_cores(c, lacks ? 1.8 : 1);
    struct results *r = cluster_analyse(c, NULL);
    const struct rank_result *rank = &r->ranks[2];
    assert_true(rank->straggler);
    assert_int_equal(rank->reason == STRAGGLER_NO_CORE, lacks);
    assert_true(lacks || strstr(rank->late_at, "train.py:10"));
    cluster_end(r, c);
  }
}

/* A line takes 120 ms. Where looks are rare, its amount follows how late the rank is; where that
 * scatters, the samples: within a fifth in each, and within two of its errors in most. */
static void amount_is_within_a_fifth(void **state) {
  u32 within_errors = 0;
  (void)state;
  for (u32 seed = 1; seed <= 40; seed++) {
    struct cluster_options o = healthy_cpu();
    o.seed = seed;
    o.noise = seed % 2 ? 0.02 : 0.4;
    o.slow[2] = 0.4; /* of 300 ms */
    struct cluster *c = cluster_new(&o);
    sample_apart(c, 0, o.steps, 0, seed % 2 ? 100 * MS : 10 * MS, seed);
    struct results *r = cluster_analyse(c, NULL);
    const struct rank_result *rank = &r->ranks[2];
    assert_true(rank->straggler && strstr(rank->late_at, "train.py:20"));
    if (fabs(rank->late_more_ms - 120) > 24)
      fail_msg("seed %u: %g ms, error %g", seed, rank->late_more_ms, rank->late_error_ms);
    within_errors += fabs(rank->late_more_ms - 120) < 2 * rank->late_error_ms;
    cluster_end(r, c);
  }
  assert_true(within_errors >= 34);
}

/* A line takes very different times, in most steps less than in the mean, which is what it costs:
 * that is told, though the rank is late by less in the median step. */
static void mean_of_uneven_work_is_told(void **state) {
  double told = 0, true_ms = 0;
  (void)state;
  for (u32 seed = 1; seed <= 20; seed++) {
    struct cluster_options o = healthy_cpu();
    o.seed = seed;
    u32 n = o.ranks, random = seed;
    SCOPED i64 *slow = memory_zeroed(o.steps * n, sizeof(*slow));
    for (u32 s = 0; s < o.steps; s++) {
      slow[s * n + 2] = (i64)(-100 * MS * log(1 - uniform_share(&random)));
      true_ms += s < o.warmup ? 0 : (double)slow[s * n + 2] / MS / (o.steps - o.warmup);
    }
    o.late_first = slow;
    struct cluster *c = cluster_new(&o);
    cluster_sample(c, slow, 0, 100 * MS, seed);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->ranks[2].straggler && strstr(r->ranks[2].late_at, "train.py:20"));
    told += r->ranks[2].late_more_ms;
    cluster_end(r, c);
  }
  if (fabs(told / true_ms - 1) > 0.05)
    fail_msg("%g of %g ms", told / 20, true_ms / 20);
}

/* No line is slow, but a function: the innermost one that has the time, whatever the names of its
 * callers, which have the same time. */
static void innermost_function_is_named(void **state) {
  static const char *const names[][2] = {
      {"work", "step"}, {"step", "work"}, {"a", "b"}, {"b", "a"}};
  (void)state;
  for (u32 i = 0; i < LENGTH_OF(names); i++) {
    struct cluster *c = slow_at_line(0.4, 0);
    cluster_call_function(c, names[i][0], names[i][1]);
    struct results *r = cluster_analyse(c, NULL);
    const struct sampled_line *line = r->ranks[2].slow_line;
    assert_true(r->ranks[2].straggler && line && !line->is_line);
    assert_string_equal(line->function, names[i][0]);
    cluster_end(r, c);
  }
}

/* Its slow line takes 120 ms, another 60 ms less than on its peers: that makes it late by 60 ms. */
static void other_line_takes_less(void **state) {
  (void)state;
  struct cluster *c = slow_at_line(0.2, 0);
  struct results *r = cluster_analyse(c, NULL);
  const struct rank_result *rank = &r->ranks[2];
  assert_true(rank->straggler && strstr(rank->late_at, "train.py:20"));
  assert_true(fabs(rank->late_more_ms - 60) < 6);
  cluster_end(r, c);
}

/* Every rank is now at line 10, now at line 40, for eight steps on average. */
static void move_for_some_steps(struct cluster *c, u32 *seed) {
  const struct steps *steps = &c->model.steps;
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    const struct call_sites *sites = c->timelines[r].call_sites;
    bool moved = uniform_share(seed) < 0.5;
    for (u32 s = 0, i = 0; s < steps->n; s++) {
      i64 end = steps->end[s * c->model.n_ranks + r];
      for (; i < sites->n_samples && sites->samples[i].time < end; i++)
        if (sites->samples[i].stack == 0 && moved)
          sites->samples[i].stack = 3;
      moved ^= uniform_share(seed) < 0.125;
    }
  }
}

/* Where a rank is in one step it is in the next: that some are at a line in more of the steps than
 * others is chance. */
static void line_for_some_steps_is_chance(void **state) {
  (void)state;
  u32 named = 0, seed = 1;
  for (u32 run = 0; run < 40; run++) {
    struct cluster_options o = healthy_cpu();
    struct cluster *c = cluster_new(&o);
    sample_lines(c, 0, 0, 0);
    move_for_some_steps(c, &seed);
    struct results *r = cluster_analyse(c, NULL);
    for (u32 i = 0; i < r->n_ranks; i++)
      named += r->ranks[i].slow_line != NULL;
    cluster_end(r, c);
  }
  if (named > 3)
    fail_msg("%u of 320 ranks", named);
}

/* A rank is also in two stacks of libraries alone. One begins where the user's own code is called:
 * it is a line of the program. The other begins elsewhere, as a handler that Python calls when the
 * program has ended: it is at no line. */
static void no_line_after_the_program(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  struct cluster *c = cluster_new(&o);
  sample_lines(c, 0, 0, 0);
  static struct call_frame frames[] = {
      {.file = "/home/me/train.py", .function = "train", .line = 10},
      {.file = "/usr/lib/python3.12/site-packages/runner.py", .function = "main", .line = 5},
      {.file = "/usr/lib/python3.12/site-packages/runner.py", .function = "close", .line = 9},
      {.file = "/usr/lib/python3.12/weakref.py", .function = "_exitfunc", .line = 666}};
  static const u32 numbers[] = {0, 1, 2, 1, 3};
  static struct call_stack stacks[] = {{numbers, 2, 0}, {numbers + 2, 2, 0}, {numbers + 4, 1, 0}};
  for (u32 r = 0; r < o.ranks; r++) {
    struct call_sites *sites = (struct call_sites *)c->timelines[r].call_sites;
    sites->frames = frames;
    sites->stacks = stacks;
    sites->n_stacks = 3;
    for (u32 i = 0; i < sites->n_samples; i++)
      sites->samples[i].stack = i % 3;
  }
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->lines.n_at, 2);
  for (u32 i = 0; i < r->lines.n_at; i++)
    assert_null(strstr(r->lines.at[i].place, "weakref"));
  cluster_end(r, c);
}

static void no_line_of_healthy_ranks(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.noise = 0.3;
  struct cluster *c = cluster_new(&o);
  sample_lines(c, 0, 0, 0);
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(stragglers_in(r), 0);
  for (u32 i = 0; i < r->n_ranks; i++)
    assert_null(r->ranks[i].late_at);
  cluster_end(r, c);
}

/* A line that is called in more ways than are kept, for as long in each. */
static void ways_that_took_as_long_are_in_the_order_of_the_file(void **state) {
  (void)state;
  enum { WAYS = 3 * PATHS };
  SCOPED_ARENA struct arena arena = {0};
  struct call_frame frames[1 + WAYS] = {{.file = "train.py", .function = "log", .line = 20}};
  struct call_stack stacks[WAYS];
  u32 indices[WAYS][2];
  for (u32 i = 0; i < WAYS; i++) {
    frames[1 + i] = (struct call_frame){.file = "train.py", .function = "main", .line = 100 + i};
    indices[i][0] = 0;
    indices[i][1] = 1 + i;
    stacks[i] = (struct call_stack){indices[i], 2, 0};
  }
  struct call_sites sites = {
      .frames = frames, .stacks = stacks, .n_frames = 1 + WAYS, .n_stacks = WAYS};
  struct analysis a = {.whole_run = true};
  struct rank_parts parts = {0};
  struct part_collector *c = parts_collect_new(&sites, &arena);
  for (u32 i = 0; i < WAYS; i++)
    parts_collect(c, &a, (struct part_sample){.stack = i, .ns = MS, .kind = OWN_LINE});
  parts_collect_end(c, &a, 0, &arena, &parts);
  const struct sampled_part *line = FIND(parts.at, parts.n, one, one->kind == OWN_LINE);
  assert_int_equal(line->n_paths, PATHS);
  for (u32 i = 0; i < PATHS; i++)
    assert_int_equal(line->paths[i].frames[0].line, 100 + i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fewer_looks_are_said),
      cmocka_unit_test(line_is_named),
      cmocka_unit_test(ways_that_took_as_long_are_in_the_order_of_the_file),
      cmocka_unit_test(a_line_that_takes_little_of_the_input_is_not_told),
      cmocka_unit_test(a_line_of_slow_input_comes_first),
      cmocka_unit_test(each_of_a_group_has_its_own_line),
      cmocka_unit_test(lines_that_call_schedules_are_compared),
      cmocka_unit_test(the_other_thread_is_named),
      cmocka_unit_test(second_line_is_told),
      cmocka_unit_test(the_call_that_differs_is_told),
      cmocka_unit_test(two_lines_share_the_delay),
      cmocka_unit_test(more_work_is_no_lack_of_cores),
      cmocka_unit_test(amount_is_within_a_fifth),
      cmocka_unit_test(mean_of_uneven_work_is_told),
      cmocka_unit_test(innermost_function_is_named),
      cmocka_unit_test(other_line_takes_less),
      cmocka_unit_test(line_for_some_steps_is_chance),
      cmocka_unit_test(no_line_after_the_program),
      cmocka_unit_test(no_line_of_healthy_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
