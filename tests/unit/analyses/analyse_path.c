/* SPDX-License-Identifier: MIT
 *
 * Compares critical path and what-if with closed forms for the hand-built cluster.
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
#include "analyses/analyses.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_labels.h"
#include "base/checked_memory.h"

static void slow_rank_on_gpu(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.5;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  double step = 1 + 0.008 + 450 + 10 + 0.010;
  assert_near(r->step_mean_ms, step, 1e-6);
  assert_near(r->path_length_ms, step, 1e-6);
  assert_near(path_ms(r, "compute"), 450, 1e-6);
  assert_near(path_ms(r, "communication"), 10, 1e-6);
  assert_near(path_ms(r, "input"), 1, 1e-6);
  assert_near(path_ms(r, "launch"), 0.018, 1e-6);
  /* everything except A2's transfer is on the slow rank */
  assert_near(r->path_by_rank[3], step, 10.011);
  assert_near(r->path_selfcheck, 0, 1e-9);
  assert_null(r->what_if_reason);
  assert_int_equal(r->what_if[0].rank, 3);
  assert_near(r->what_if[0].step_ms, step - 150, 1e-3);
  assert_near(step_if(r, WHAT_IF_COMMUNICATION), step - 10, 1e-3);
  assert_near(step_if(r, WHAT_IF_INPUT), step - 1, 1e-3);
  cluster_end(r, c);
}

static const struct paying *paying(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_pays; i++)
    if (!strcmp(r->pays[i].name, name))
      return &r->pays[i];
  return NULL;
}

/* On the slow rank forward takes 150 ms of the step: that is what it pays, in proportion. */
static void what_pays_is_the_replay_of_less(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.slow[3] = 0.5;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct paying *forward = paying(r, "gemm_forward");
  assert_non_null(forward);
  assert_near(forward->saves_at_90, 15 / r->step_mean_ms, 1e-4);
  assert_near(forward->saves_at_50, 75 / r->step_mean_ms, 1e-4);
  assert_near(forward->saves_at_0, 150 / r->step_mean_ms, 1e-3);
  assert_string_equal(forward->kind, "kernel");
  assert_near(forward->path_ms, 150, 1e-3);
  assert_null(forward->why);
  for (u32 i = 1; i < r->n_pays; i++)
    assert_true(r->pays[i].saves_at_0 <= r->pays[i - 1].saves_at_0);
  cluster_end(r, c);
}

/* The host is busy for 400 ms between the launches of forward and backward: however fast forward
 * is, backward begins no earlier. */
static void what_the_host_hides_pays_nothing(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  for (u32 i = 0; i < o.ranks; i++)
    o.late_launch[i] = 400 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  const struct paying *forward = paying(r, "gemm_forward");
  assert_non_null(forward);
  assert_near(forward->gpu_share, 1 / 3.0, 0.01);
  assert_near(forward->saves_at_0, 0, 1e-6);
  assert_non_null(forward->why);
  assert_non_null(strstr(forward->why, "host"));
  cluster_end(r, c);
}

static void slow_rank_on_cpu(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.slow[2] = 0.4;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  double step = 1 + 420 + 0.005 + 0.008 + 10 + 0.010;
  assert_near(r->step_mean_ms, step, 1e-6);
  assert_near(path_ms(r, "compute"), 420, 1e-6);
  assert_near(path_ms(r, "communication"), 10, 1e-6);
  assert_near(r->what_if[0].step_ms, step - 120, 1e-3);
  cluster_end(r, c);
}

/* Backward on a GPU: the calling thread waits while another launches. Per step forward is launched
 * by the first thread (10 ms of host), backward by the second (20 ms of host before its one
 * kernel of 5 ms), then the first waits for the device. */
/* In each step another rank of four has 80 ms more to do. In the mean step each has 20 ms more, and
 * if that is all that any has, 60 ms are saved: though no rank is slower than its peers. */
static void work_that_falls_on_another_rank_in_each_step(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.ranks = 4;
  i64 *late = calloc((size_t)o.steps * o.ranks, sizeof(*late));
  for (u32 step = 0; step < o.steps; step++)
    late[step * o.ranks + step % o.ranks] = 80 * MS;
  o.late_backward = late;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_near(r->step_mean_ms - step_if(r, WHAT_IF_EVERY_RANK), 60, 1e-3);
  const struct finding *finding = finding_of(r, "DIST.LOAD_IMBALANCE");
  assert_non_null(finding);
  assert_null(strstr(finding->title, "next to nothing"));
  assert_null(finding_of(r, "DIST.STRAGGLER"));
  cluster_end(r, c);
  free(late);
}

/* Before one collective of a step another rank has 80 ms more to do than before the other, as with
 * experts: each step lasts 160 ms longer, though all ranks have as much in all. If all of them had
 * an equal share before each, 60 ms of each 80 would go of four ranks, and 40 of two of which it
 * is always the same one. */
static void work_that_falls_on_another_rank_before_each_collective(void **state) {
  (void)state;
  for (u32 ranks = 2; ranks <= 4; ranks += 2) {
    struct cluster_options o = healthy_cpu();
    o.ranks = ranks;
    o.waits_for_first = true;
    i64 *first = calloc((size_t)o.steps * ranks, sizeof(*first));
    i64 *second = calloc((size_t)o.steps * ranks, sizeof(*second));
    for (u32 step = 0; step < o.steps; step++) {
      u32 turn = ranks == 2 ? 0 : step;
      first[step * ranks + turn % ranks] = 80 * MS;
      second[step * ranks + (turn + 1) % ranks] = 80 * MS;
    }
    o.late_first = first;
    o.late_backward = second;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    double saved = r->step_mean_ms - step_if(r, WHAT_IF_EVERY_RANK);
    assert_near(saved, ranks == 2 ? 80 : 120, 0.1);
    cluster_end(r, c);
    free(first);
    free(second);
  }
}

/* A rank has 80 ms more to do before one of a step's two collectives: these are what the step gets
 * shorter by, not a share of them and of what the rank does before the other. */
static void a_rank_that_is_slow_before_one_collective(void **state) {
  (void)state;
  for (u32 second = 0; second < 2; second++) {
    struct cluster_options o = healthy_cpu();
    o.waits_for_first = true;
    i64 *late = calloc((size_t)o.steps * o.ranks, sizeof(*late));
    for (u32 step = 0; step < o.steps; step++)
      late[step * o.ranks + 2] = 80 * MS;
    *(second ? &o.late_backward : &o.late_first) = late;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->ranks[2].straggler);
    assert_near(r->step_mean_ms - step_if(r, WHAT_IF_RANK), 80, 0.1);
    cluster_end(r, c);
    free(late);
  }
}

/* What it does faster before the other makes up for nothing: there the peers have 60 ms more to do.
 */
static void a_rank_that_is_slow_before_one_collective_and_quick_before_the_other(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.waits_for_first = true;
  i64 *first = calloc((size_t)o.steps * o.ranks, sizeof(*first));
  i64 *second = calloc((size_t)o.steps * o.ranks, sizeof(*second));
  for (u32 i = 0; i < o.steps * o.ranks; i++)
    *(i % o.ranks == 2 ? &first[i] : &second[i]) = i % o.ranks == 2 ? 80 * MS : 60 * MS;
  o.late_first = first;
  o.late_backward = second;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_near(r->step_mean_ms - step_if(r, WHAT_IF_RANK), 80, 0.1);
  cluster_end(r, c);
  free(first);
  free(second);
}

/* Likewise where the first of a step's collectives is one at which only its root is waited for. */
static void a_root_that_is_slow_before_it_sends(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.waits_for_first = true;
  i64 *late = calloc((size_t)o.steps * o.ranks, sizeof(*late));
  for (u32 step = 0; step < o.steps; step++)
    late[step * o.ranks + 2] = 80 * MS;
  o.late_first = late;
  struct cluster *c = cluster_new(&o);
  for (u32 i = 0; i < c->model.n_collectives; i++)
    if (i % 2 == 0) {
      c->model.collectives[i].op = TSCOPE_OP_BROADCAST;
      c->model.collectives[i].root = 2;
    }
  struct results *r = cluster_analyse(c, NULL);
  assert_near(r->step_mean_ms - step_if(r, WHAT_IF_RANK), 80, 1);
  cluster_end(r, c);
  free(late);
}

/* Nor are steps shorter than the compute of the rank that has least, of those that are replayed and
 * of the others. */
static void no_rank_is_faster_than_the_fastest(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.ranks = 2;
  o.steps = 400;
  o.noise = 0.7;
  o.transfer = US;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  double least = INFINITY;
  for (u32 i = 0; i < r->n_ranks; i++)
    least = fmin(least, r->ranks[i].mean_compute_ms);
  assert_true(step_if(r, WHAT_IF_EVERY_RANK) >= least * (1 - 1e-6));
  cluster_end(r, c);
}

/* Compute varies from step to step, as sequences of other lengths make it. What the slowest rank of
 * a step has more than the mean is what equal shares save; and a little more, since over all steps
 * too some ranks have more by chance. */
static void work_that_varies_from_step_to_step(void **state) {
  (void)state;
  for (u32 on_gpu = 0; on_gpu < 2; on_gpu++) {
    struct cluster_options o = on_gpu ? healthy_gpu() : healthy_cpu();
    o.noise = 0.3;
    o.seed = 5;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    double saved = 1 - step_if(r, WHAT_IF_EVERY_RANK) / r->step_mean_ms;
    assert_near(saved, r->wall_frac_lost_to_imbalance, 0.12 * r->wall_frac_lost_to_imbalance);
    cluster_end(r, c);
  }
}

/* Input of very uneven length, the same on all ranks: few long steps hold half of it. */
static i64 *uneven_input(const struct cluster_options *o, double *mean_ms) {
  i64 *late = malloc(sizeof(i64) * o->steps * o->ranks);
  u32 seed = 11;
  *mean_ms = 0;
  for (u32 step = 0; step < o->steps; step++) {
    i64 ns = (i64)(4.0 * MS / pow(uniform_share(&seed), 0.9));
    ns = ns < 3000 * MS ? ns : 3000 * MS;
    for (u32 rank = 0; rank < o->ranks; rank++)
      late[step * o->ranks + rank] = ns;
    *mean_ms += step < o->warmup ? 0 : (double)ns / MS / (o->steps - o->warmup);
  }
  return late;
}

/* Some of the steps are replayed; what is saved is told of all. */
static void what_is_saved_of_uneven_steps_is_of_all(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  double mean_ms;
  o.ranks = 2;
  o.steps = 700;
  o.forward = o.backward = 2 * MS;
  o.transfer = 1 * MS;
  i64 *late = uneven_input(&o, &mean_ms);
  o.late_input = late;
  o.slow[1] = 0.5; /* 3 ms in each step, whatever its length */
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_true(r->step_cv > 1.5);
  assert_near(r->step_mean_ms, mean_ms + 1 + 9 + 1.023, 0.1);
  assert_near(step_if(r, WHAT_IF_INPUT), r->step_mean_ms - mean_ms - 1, 0.02 * r->step_mean_ms);
  assert_near(step_if(r, WHAT_IF_RANK), r->step_mean_ms - 3, 0.1);
  cluster_end(r, c);
  free(late);
}

/* A rank of which no steps are known is 150 ms late at A2: that is no time that the network takes,
 * and stays whatever the others do. (What it does while A1 is under way counts as done after A1,
 * whose 10 ms are saved besides.) */
static void a_wait_for_a_rank_without_steps_is_no_transfer(void **state) {
  (void)state;
  for (u32 on_gpu = 0; on_gpu < 2; on_gpu++) {
    struct cluster_options o = on_gpu ? healthy_gpu() : healthy_cpu();
    o.slow[3] = 0.5;
    struct cluster *c = cluster_new(&o);
    for (u32 step = 0; step < o.steps; step++)
      c->model.steps.begin[step * o.ranks + 3] = c->model.steps.end[step * o.ranks + 3] =
          NS_UNKNOWN;
    struct results *r = cluster_analyse(c, NULL);
    assert_near(r->path_selfcheck, 0, 1e-9);
    assert_near(step_if(r, WHAT_IF_COMMUNICATION), r->step_mean_ms - 15, 5.1);
    cluster_end(r, c);
  }
}

/* Rank 2 waits for its input for 100 ms in these steps. */
static i64 *late_in(const struct cluster_options *o, u32 from, u32 until) {
  i64 *late = memory_zeroed((size_t)o->steps * o->ranks, sizeof(*late));
  for (u32 step = from; step < until; step++)
    late[step * o->ranks + 2] = 100 * MS;
  return late;
}

/* A step in which a GPU was not seen parts the others in two rows; the slow ones are the last of
 * the second, which has most. */
static void rows_are_whole_where_all_steps_fit(void **state) {
  (void)state;
  enum { UNSEEN = 10 };
  struct cluster_options o = healthy_gpu();
  i64 *late = late_in(&o, 40, o.steps);
  o.late_input = late;
  struct cluster *c = cluster_new(&o);
  i64 from = c->model.steps.begin[UNSEEN * o.ranks], until = c->model.steps.end[UNSEEN * o.ranks];
  struct gpu_window windows[] = {
      {.start = INT64_MIN + 1, .end = from, .clock = TSCOPE_GPU_CLOCK_CUPTI},
      {.start = from, .end = until, .clock = TSCOPE_GPU_CLOCK_NONE, .reason = "it rests"},
      {.start = until, .end = INT64_MAX, .settled = until, .clock = TSCOPE_GPU_CLOCK_CUPTI}};
  c->model.ranks[0].gpu_windows = windows;
  c->model.ranks[0].n_gpu_windows = LENGTH_OF(windows);
  struct results *r = cluster_analyse(c, NULL);
  double steps = r->analysis->n_steps;
  assert_near(step_if(r, WHAT_IF_INPUT), r->step_mean_ms - 1 - 1000 / steps, 1);
  cluster_end(r, c);
  free(late);
}

/* Rank 3 has no batches from step 40 on. Where it is not known what it did while rank 2 was late,
 * these steps tell nothing. */
static void a_rank_without_more_steps_was_there_until_its_last(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  i64 *late = late_in(&o, 5, 20);
  o.late_input = late;
  for (u32 known = 0; known < 2; known++) {
    struct cluster *c = cluster_new(&o);
    struct steps *steps = &c->model.steps;
    for (u32 step = 0; step < o.steps; step++)
      if (step >= 40 || (!known && step >= 5 && step < 20))
        steps->begin[step * o.ranks + 3] = steps->end[step * o.ranks + 3] = NS_UNKNOWN;
    c->model.ranks[3].end = c->model.end;
    struct results *r = cluster_analyse(c, NULL);
    double saved = known ? 1 + 1500. / r->analysis->n_steps : 1;
    printf("%f %f %f\n", step_if(r, WHAT_IF_INPUT), r->step_mean_ms, saved);
    assert_near(step_if(r, WHAT_IF_INPUT), r->step_mean_ms - saved, 1e-3);
    cluster_end(r, c);
  }
  free(late);
}

static void a_thread_that_waits_for_another(void **state) {
  (void)state;
  enum { STEPS = 20, SPANS = 7 };
  static struct span spans[STEPS * SPANS];
  static struct edge edges[STEPS];
  static i64 begins[STEPS], ends[STEPS];
  static struct phase_times phases[STEPS];
  struct lane lanes[] = {{false, 0, "main"}, {false, 1, "autograd"}, {true, 0, "0"}};
  struct rank rank = {.closed = true, .records = STEPS * SPANS};
  struct cluster c = {0};
  i64 step = 36 * MS;
  for (u32 s = 0; s < STEPS; s++) {
    i64 t = s * step;
    u32 n = s * SPANS;
#define SPAN(i, kind_, category_, lane_, from, to, launch_)                                        \
  spans[n + (i)] = (struct span){.start = t + (from),                                              \
                                 .end = t + (to),                                                  \
                                 .kind = (kind_),                                                  \
                                 .category = (category_),                                          \
                                 .lane = (lane_),                                                  \
                                 .link = INDEX_NONE,                                               \
                                 .launch = (launch_)}
    SPAN(0, SPAN_PHASE, TSCOPE_PHASE_FORWARD, 0, 0, 10 * MS, INDEX_NONE);
    SPAN(1, SPAN_LAUNCH, 0, 0, 10 * MS - LAUNCH, 10 * MS, INDEX_NONE);
    SPAN(2, SPAN_PHASE, TSCOPE_PHASE_BACKWARD, 0, 10 * MS, 30 * MS, INDEX_NONE);
    SPAN(3, SPAN_KERNEL, 0, 2, 10 * MS, 11 * MS, n + 1);
    SPAN(4, SPAN_LAUNCH, 0, 1, 30 * MS - 2 * LAUNCH, 30 * MS - LAUNCH, INDEX_NONE);
    SPAN(5, SPAN_KERNEL, 0, 2, 30 * MS, 35 * MS, n + 4);
    SPAN(6, SPAN_SYNC, 0, 0, 30 * MS, step, INDEX_NONE);
#undef SPAN
    /* in order of start: the sync begins with the kernel but lasts longer */
    struct span swap = spans[n + 5];
    spans[n + 5] = spans[n + 6];
    spans[n + 6] = swap;
    edges[s] = (struct edge){n + 6, n + 5, EDGE_SYNC};
    phases[s] = (struct phase_times){.forward = 10 * MS,
                                     .backward = 20 * MS,
                                     .data = NS_UNKNOWN,
                                     .optimizer = NS_UNKNOWN,
                                     .other = 6 * MS};
    begins[s] = t;
    ends[s] = t + step;
  }
  struct timeline timeline = {.spans = spans,
                              .n_spans = STEPS * SPANS,
                              .edges = edges,
                              .n_edges = STEPS,
                              .lanes = lanes,
                              .n_lanes = 3,
                              .on_gpu = true,
                              .has_compute = true,
                              .has_comm = true,
                              .ring_begin = NS_UNKNOWN};
  c.timelines = &timeline;
  c.model = (struct model){.world_size = 1,
                           .n_ranks = 1,
                           .ranks = &rank,
                           .phases = phases,
                           .steps = {.n = STEPS, .begin = begins, .end = ends}};
  struct results *r = cluster_analyse(&c, NULL);
  assert_near(r->path_length_ms, 36, 1e-6);
  assert_near(path_ms(r, "compute"), 5, 1e-6);
  assert_near(path_ms(r, "unknown"), 0, 1e-6);
  assert_near(r->path_selfcheck, 0, 1e-9);
  /* What the thread does from its call to its launch is of the pass: without that the first kernel
   * ends after 11 ms, and the host wakes up 1 ms after it. */
  const struct paying *backward = paying(r, "backward");
  assert_non_null(backward);
  assert_near(backward->saves_at_0 * r->step_mean_ms, 36 - 12, 2 * (double)LAUNCH / 1e6);
  results_free(r);
}

/* What a rank's first thread does late in each step is saved in full: that autograd's thread waits
 * for it on every rank is no work that they all have. */
static void a_slow_host_beside_a_thread_of_autograd(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.autograd = true;
  o.forward = 10 * MS;
  o.late_launch[3] = 100 * MS;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->what_if[0].rank, 3);
  /* B1 waits for F's 10 ms then, and begins right behind it: its launch is long past */
  assert_near(r->what_if[0].saving.ms, 100 - 10 + LAUNCH / 1e6, 1e-6);
  cluster_end(r, c);
}

/* A job was killed while its host was ahead of its GPU: of the second step only the host's times
 * are known. */
static void a_sample_that_ends_before_it_begins(void **state) {
  i64 begin[] = {100 * MS, 0}, end[] = {200 * MS, MS};
  struct span spans[3] = {0};
  struct lane lane = {.name = "main"};
  struct rank rank = {0};
  struct model model = {
      .n_ranks = 1, .ranks = &rank, .steps = {.n = 2, .begin = begin, .end = end}};
  struct sample sample = {0, 2};
  struct slice slice = {0};
  struct graph graph = {.n_samples = 1, .samples = &sample, .slices = &slice};
  struct analysis a = {.model = &model, .graph = &graph, .n_steps = 2, .begin = begin, .end = end};
  (void)state;
  for (u32 i = 0; i < 3; i++)
    spans[i] = (struct span){.start = i * 50 * MS,
                             .end = i * 50 * MS + MS,
                             .kind = SPAN_OP,
                             .link = INDEX_NONE,
                             .launch = INDEX_NONE};
  const struct timeline timeline = {
      .spans = spans, .n_spans = 3, .lanes = &lane, .n_lanes = 1, .ring_begin = NS_UNKNOWN};
  path_labels_new(&graph.labels);
  slice_cut(&a, &timeline);
  assert_false(slice.present);
  path_labels_free(graph.labels);
}

/* Of two ranks one has a clock that is not known: how long the other is in their collectives
 * depends on it, and a replay has only this one. */
static void collectives_with_nobody_promise_nothing(void **state) {
  (void)state;
  for (u32 known = 0; known < 2; known++) {
    struct cluster_options o = healthy_gpu();
    o.ranks = 2;
    o.transfer = 40 * MS;
    struct cluster *c = cluster_new(&o);
    c->model.ranks[1].clock.aligned = known;
    struct results *r = cluster_analyse(c, NULL);
    assert_int_equal(!known, r->what_if_reason && strstr(r->what_if_reason, "are not aligned"));
    cluster_end(r, c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_with_nobody_promise_nothing),
      cmocka_unit_test(slow_rank_on_gpu),
      cmocka_unit_test(rows_are_whole_where_all_steps_fit),
      cmocka_unit_test(a_rank_without_more_steps_was_there_until_its_last),
      cmocka_unit_test(what_pays_is_the_replay_of_less),
      cmocka_unit_test(what_the_host_hides_pays_nothing),
      cmocka_unit_test(slow_rank_on_cpu),
      cmocka_unit_test(work_that_falls_on_another_rank_in_each_step),
      cmocka_unit_test(work_that_falls_on_another_rank_before_each_collective),
      cmocka_unit_test(a_rank_that_is_slow_before_one_collective),
      cmocka_unit_test(a_rank_that_is_slow_before_one_collective_and_quick_before_the_other),
      cmocka_unit_test(a_root_that_is_slow_before_it_sends),
      cmocka_unit_test(no_rank_is_faster_than_the_fastest),
      cmocka_unit_test(work_that_varies_from_step_to_step),
      cmocka_unit_test(what_is_saved_of_uneven_steps_is_of_all),
      cmocka_unit_test(a_wait_for_a_rank_without_steps_is_no_transfer),
      cmocka_unit_test(a_thread_that_waits_for_another),
      cmocka_unit_test(a_slow_host_beside_a_thread_of_autograd),
      cmocka_unit_test(a_sample_that_ends_before_it_begins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
