/* SPDX-License-Identifier: MIT
 *
 * A GPipe schedule of equal micro-batches with messages that take no time: its bubble is the closed
 * form (p - 1) / (m + p - 1). One heavy stage gives a finding.
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
#include "base/intervals.h"

enum { STAGES = 4, BATCHES = 6, STEPS = 3, ROOM = 1024 };

struct job {
  struct model model;
  struct rank ranks[STAGES];
  struct comm comm;
  u32 members[STAGES];
  struct collective collectives[ROOM];
  struct arrival arrivals[2 * ROOM];
  struct span spans[STAGES][ROOM];
  struct interval compute[STAGES][ROOM], busy[STAGES][ROOM];
  u32 n_spans[STAGES];
  struct intervals unions[STAGES], comms[STAGES];
  i64 begin[STEPS * STAGES], end[STEPS * STAGES];
  i64 now[STAGES];
  double slow[STAGES]; /* extra share of compute */
  bool asleep;         /* without a GPU: stages work where nothing shows it */
  bool shifted;        /* a step begins with the backwards, as one found by a period may */
  bool exchange;       /* ranks give each other messages by twos, as experts do: not a pipeline */
  bool ring;           /* each stage sends to the next, the last to the first: not a pipeline */
  u32 stages;          /* 0: STAGES */
  u32 chunks;          /* of a stage, 0: 1 */
  bool turns;          /* two chunks, as a V: the last stage goes on with what it has computed */
  u32 parts;           /* of a backward pass, 0: 1 */
  u32 recorded;        /* messages of the last stage */
  bool ends_early;     /* the recording of the last stage: in the middle of the second step */
  bool left_out;       /* times of messages, in all steps but one */
  u8 times[STEPS];
  struct phase_times phases[STEPS * STAGES];
};

static u32 stages_of(const struct job *job) {
  return job->stages ? job->stages : STAGES;
}

static void message(struct job *job, i32 step, u32 from, u32 to) {
  struct model *m = &job->model;
  struct collective *c = &job->collectives[m->n_collectives];
  if (job->ends_early && MAX(from, to) == STAGES - 1 && job->recorded++ >= 3 * BATCHES - 1)
    return;
  i64 sent = job->now[from], ready = job->now[to], taken = MAX(sent, ready);
  *c = (struct collective){.bytes = 1000,
                           .count = 1000,
                           .first_arrival = m->n_arrivals,
                           .n_arrivals = 2,
                           .last_start = taken,
                           .step = step,
                           .op = TSCOPE_OP_SEND,
                           .complete = true};
  for (u32 k = 0; k < 2; k++) {
    u32 rank = k ? to : from, index = m->n_arrivals++;
    i64 start = k ? ready : taken, call = job->now[rank];
    job->arrivals[index] = (struct arrival){.call_start = call,
                                            .call_end = call,
                                            .start = start,
                                            .end = taken,
                                            .rank = rank,
                                            .collective = m->n_collectives,
                                            .step = step,
                                            .op = k ? TSCOPE_OP_RECV : TSCOPE_OP_SEND};
    if (taken > start) {
      job->spans[rank][job->n_spans[rank]++] = (struct span){.start = start,
                                                             .end = taken,
                                                             .link = index,
                                                             .launch = INDEX_NONE,
                                                             .kind = SPAN_COLLECTIVE,
                                                             .lane = 1};
      intervals_append(&job->comms[rank], start, taken);
    }
  }
  m->n_collectives++;
  job->now[to] = taken;
}

static void work(struct job *job, u32 stage, i64 ns) {
  i64 end = job->now[stage] + (i64)((double)ns * (1 + job->slow[stage]));
  i64 start = job->now[stage];
  job->now[stage] = end;
  if (job->asleep)
    return;
  job->spans[stage][job->n_spans[stage]++] = (struct span){
      .start = start, .end = end, .link = INDEX_NONE, .launch = INDEX_NONE, .kind = SPAN_KERNEL};
  intervals_append(&job->unions[stage], start, end);
}

/* Two ranks give each other a message at once: each calls its send first. */
static void exchange(struct job *job, i32 step, u32 one, u32 other) {
  u32 first = job->model.n_arrivals;
  message(job, step, one, other);
  message(job, step, other, one);
  for (u32 i = first; i < job->model.n_arrivals; i++)
    job->arrivals[i].call_start += job->arrivals[i].op == TSCOPE_OP_RECV;
}

/* Which stage has a part of the model. */
static u32 stage_of_part(const struct job *job, u32 part) {
  u32 n = stages_of(job);
  return job->turns && part >= n ? 2 * n - 1 - part : part % n;
}

static void back(struct job *job, u32 step, u32 stage) {
  struct phase_times *times = &job->phases[step * stages_of(job) + stage];
  times->backward_begin = times->backwards ? times->backward_begin : job->now[stage];
  times->backwards += job->parts ? job->parts : 1;
  work(job, stage, 2 * MS);
}

/* Parts of the model in turn, forward and then backward. */
static void play_parts(struct job *job, u32 step) {
  u32 parts = stages_of(job) * job->chunks;
  for (u32 batch = 0; batch < BATCHES; batch++)
    for (u32 part = 0; part < parts; part++) {
      u32 stage = stage_of_part(job, part);
      work(job, stage, MS);
      if (part + 1 < parts && stage_of_part(job, part + 1) != stage)
        message(job, (i32)step, stage, stage_of_part(job, part + 1));
    }
  for (u32 batch = 0; batch < BATCHES; batch++)
    for (u32 part = parts; part-- > 0;) {
      u32 stage = stage_of_part(job, part);
      back(job, step, stage);
      if (part > 0 && stage_of_part(job, part - 1) != stage)
        message(job, (i32)step, stage, stage_of_part(job, part - 1));
    }
}

/* All forwards, then all backwards; a step begins when the last stage's last backward is done. */
static void play_step(struct job *job, u32 step) {
  if (job->chunks) {
    play_parts(job, step);
    return;
  }
  for (u32 stage = 0; stage < STAGES && job->exchange; stage++) {
    work(job, stage, MS);
    if (stage % 2)
      exchange(job, (i32)step, stage - 1, stage);
  }
  if (job->exchange)
    return;
  for (u32 batch = 0; batch < BATCHES; batch++)
    for (u32 stage = 0; stage < STAGES; stage++) {
      work(job, stage, MS);
      if (stage + 1 < STAGES)
        message(job, (i32)step - (job->shifted && step), stage, stage + 1);
      else if (job->ring)
        message(job, (i32)step, stage, 0);
    }
  for (u32 batch = 0; batch < BATCHES && !job->ring; batch++)
    for (u32 stage = STAGES; stage-- > 0;) {
      work(job, stage, 2 * MS);
      if (stage > 0)
        message(job, (i32)step, stage, stage - 1);
    }
}

static int load(const struct model *model, u32 rank, struct timeline *timeline) {
  struct job *job = (struct job *)model->internal;
  static struct lane lanes[2] = {{.device = true, .id = 0}, {.device = true, .id = 1}};
  *timeline = (struct timeline){.rank = rank,
                                .spans = job->spans[rank],
                                .n_spans = job->n_spans[rank],
                                .lanes = lanes,
                                .n_lanes = 2,
                                .compute = job->unions[rank],
                                .comm = job->comms[rank],
                                .has_compute = true,
                                .has_comm = true,
                                .has_memcpy = true,
                                .on_gpu = !job->asleep};
  return 0;
}

static void release(struct timeline *timeline) {
  (void)timeline;
}

/* As join/leave_times_out.c does. */
static void leave_times_out(struct job *job, struct arrival *arrival) {
  i32 step = job->collectives[arrival->collective].step;
  if (job->times[step] != TIMES_LEFT_OUT)
    return;
  arrival->times = TIMES_LEFT_OUT;
  arrival->start = arrival->end = NS_UNKNOWN;
  arrival->call_start = arrival->call_end = job->begin[(u32)step * stages_of(job) + arrival->rank];
}

/* The schedule above is written batch by batch. For each rank this is its own order only if the
 * work that it waits for is played first, so the clock of a stage never goes back. */
static struct results *analyse_job(struct job *job) {
  struct model *m = &job->model;
  m->internal = job;
  u32 n = stages_of(job);
  m->n_ranks = m->world_size = n;
  m->phases = job->chunks ? job->phases : NULL;
  m->ranks = job->ranks;
  m->comms = &job->comm;
  m->n_comms = 1;
  m->collectives = job->collectives;
  m->arrivals = job->arrivals;
  m->clock_aligned = true;
  m->clock_residual_us = 0.001;
  m->steps = (struct steps){.n = STEPS,
                            .method = job->shifted ? "collective period" : "step marks",
                            .by_collectives = job->shifted,
                            .confidence = 1,
                            .begin = job->begin,
                            .end = job->end,
                            .times = job->left_out ? job->times : NULL};
  for (u32 step = 0; step < STEPS; step++)
    job->times[step] = step + 1 < STEPS ? TIMES_LEFT_OUT : TIMES_KEPT;
  job->comm = (struct comm){.size = n, .members = job->members};
  for (u32 i = 0; i < n; i++) {
    job->members[i] = i;
    job->unions[i].at = job->compute[i];
    job->comms[i].at = job->busy[i];
    job->ranks[i] = (struct rank){.rank = i, .host = "node", .closed = true, .clock.aligned = true};
  }
  for (u32 step = 0; step < STEPS; step++) {
    for (u32 i = 0; i < n; i++)
      job->begin[step * n + i] = job->now[i];
    play_step(job, step);
    for (u32 i = 0; i < n; i++)
      job->end[step * n + i] = job->now[i];
  }
  for (u32 i = 0; i < m->n_arrivals && job->left_out; i++)
    leave_times_out(job, &job->arrivals[i]);
  m->end = job->now[0];
  struct analyse_options options = no_options();
  const struct timeline_source source = {load, release};
  return analyse_with(m, &options, &source);
}

static void check_closed_form(bool asleep) {
  struct job *job = calloc(1, sizeof(*job));
  job->asleep = asleep;
  struct results *r = analyse_job(job);
  assert_int_equal((int)r->pipeline_stages, STAGES);
  assert_int_equal((int)r->pipeline_micro_batches, BATCHES);
  assert_int_equal((int)r->pipeline_chunks, 1);
  double inherent = (STAGES - 1.0) / (BATCHES + STAGES - 1.0);
  assert_float_equal(r->pipeline_inherent, inherent, 1e-9);
  /* A stage is idle in the first receive of the next step, so the first and the last step have less
   * idle time: three steps contain two whole bubbles and the fill of the first. */
  assert_true(r->pipeline_bubble <= inherent + 1e-9 && r->pipeline_bubble > 0.7 * inherent);
  assert_null(finding_of(r, "DIST.PIPELINE_BUBBLE"));
  for (u32 i = 0; i < STAGES; i++)
    assert_int_equal(r->pipeline_stage[i].ranks[0], i);
  results_free(r);
  free(job);
}

static void bubble_is_the_closed_form(void **state) {
  (void)state;
  check_closed_form(false);
  check_closed_form(true);
}

/* Its last step is left out where micro-batches are counted. */
static void a_stage_that_ends_early_has_as_many_micro_batches(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->ends_early = true;
  struct results *r = analyse_job(job);
  assert_int_equal((int)r->pipeline_stages, STAGES);
  assert_int_equal((int)r->pipeline_micro_batches, BATCHES);
  results_free(r);
  free(job);
}

static void experts_by_twos_are_no_pipeline(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->exchange = true;
  job->slow[1] = 0.6;
  struct results *r = analyse_job(job);
  assert_true(isnan(r->pipeline_stages));
  assert_non_null(r->pipeline_reason);
  assert_null(finding_of(r, "DIST.PIPELINE_BUBBLE"));
  results_free(r);
  free(job);
}

static void a_heavy_stage_is_named(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->slow[2] = 0.6;
  struct results *r = analyse_job(job);
  const struct finding *finding = finding_of(r, "DIST.PIPELINE_BUBBLE");
  assert_non_null(finding);
  assert_int_equal(finding->n_ranks, 1);
  assert_int_equal(finding->ranks[0], 2);
  assert_non_null(strstr(finding->evidence, "Stage 2"));
  results_free(r);
  memset(job, 0, sizeof(*job));
  job->slow[2] = 0.05; /* the others wait at most 5 % of their compute: below 5 % of the step */
  r = analyse_job(job);
  assert_null(finding_of(r, "DIST.PIPELINE_BUBBLE"));
  results_free(r);
  free(job);
}

static void stages_are_in_order_where_steps_begin_in_the_middle(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->shifted = true;
  struct results *r = analyse_job(job);
  for (u32 i = 0; i < STAGES; i++)
    assert_int_equal(r->pipeline_stage[i].ranks[0], i);
  results_free(r);
  free(job);
}

static void a_ring_of_equals_is_no_pipeline(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->ring = true;
  struct results *r = analyse_job(job);
  assert_true(isnan(r->pipeline_stages) && isnan(r->pipeline_bubble));
  assert_non_null(r->pipeline_reason);
  results_free(r);
  free(job);
}

/* 5 messages each way for each of 6 micro-batches: 10 of 2 chunks would send as many. */
static void what_does_not_tell_is_unknown(void **state) {
  struct job *job = calloc(1, sizeof(*job));
  (void)state;
  job->stages = 2;
  job->chunks = 3;
  job->parts = 4;
  struct results *r = analyse_job(job);
  assert_int_equal((int)r->pipeline_stages, 2);
  assert_true(isnan(r->pipeline_micro_batches) && isnan(r->pipeline_chunks));
  assert_true(isnan(r->pipeline_inherent) && isnan(r->pipeline_excess));
  assert_non_null(r->pipeline_reason);
  assert_null(finding_of(r, "DIST.PIPELINE_BUBBLE"));
  results_free(r);
  free(job);
}

/* Of two stages the messages alone do not say which schedule it is, nor those of a V. Of a long run
 * the times of messages are kept in few steps only. */
static void passes_tell_chunks_and_micro_batches(void **state) {
  static const struct job jobs[] = {{.stages = 2, .chunks = 1},
                                    {.stages = 2, .chunks = 1, .parts = 2},
                                    {.stages = 2, .chunks = 2},
                                    {.stages = 2, .chunks = 2, .parts = 2},
                                    {.stages = 2, .chunks = 3},
                                    {.stages = 2, .chunks = 1, .left_out = true},
                                    {.stages = 2, .chunks = 2, .turns = true},
                                    {.stages = 3, .chunks = 2},
                                    {.stages = 4, .chunks = 2, .turns = true, .parts = 2}};
  struct job *job = calloc(1, sizeof(*job));
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(jobs); i++) {
    *job = jobs[i];
    struct results *r = analyse_job(job);
    assert_int_equal((int)r->pipeline_stages, jobs[i].stages);
    assert_int_equal((int)r->pipeline_micro_batches, BATCHES);
    assert_int_equal((int)r->pipeline_chunks, jobs[i].chunks);
    results_free(r);
  }
  free(job);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stage_that_ends_early_has_as_many_micro_batches),
      cmocka_unit_test(bubble_is_the_closed_form),
      cmocka_unit_test(a_heavy_stage_is_named),
      cmocka_unit_test(experts_by_twos_are_no_pipeline),
      cmocka_unit_test(passes_tell_chunks_and_micro_batches),
      cmocka_unit_test(what_does_not_tell_is_unknown),
      cmocka_unit_test(stages_are_in_order_where_steps_begin_in_the_middle),
      cmocka_unit_test(a_ring_of_equals_is_no_pipeline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
