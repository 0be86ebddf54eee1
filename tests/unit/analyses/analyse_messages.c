/* SPDX-License-Identifier: MIT
 *
 * Messages on the host, as gloo has them: a sender waits until the receiver has called its receive,
 * which may be long before the receiver needs it. Pairs of ranks built by hand, which end each step
 * together, with closed forms.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <stdlib.h>

#include "analyse_cluster.h"
#include "base/intervals.h"

enum { RANKS = 4, STEPS = 30, MEETINGS = 3 * STEPS, SPANS = 20 };
enum { LANE_HOST, LANE_GLOO };
#define CALL (10 * US)
#define TRANSFER (100 * US)

struct job {
  struct model model;
  struct rank ranks[RANKS];
  struct comm comm;
  u32 members[RANKS];
  struct collective collectives[MEETINGS];
  struct arrival arrivals[MEETINGS * RANKS];
  struct span spans[RANKS][STEPS * SPANS];
  struct edge edges[RANKS][MEETINGS];
  u32 n_spans[RANKS], n_edges[RANKS];
  struct interval busy[RANKS][MEETINGS];
  struct intervals comms[RANKS];
  i64 begin[STEPS * RANKS], end[STEPS * RANKS];
  struct phase_times phases[STEPS * RANKS];
  /* In a step: when the sender calls and for how long, and how long after its call the receiver
   * needs the message, and how long each works then. Senders come first. */
  u32 n_ranks;
  i64 sends_at, send_call, needed_after, works_then[2];
  i64 later[RANKS]; /* it calls */
  bool crossing;    /* instead: each sends to the other, and goes on */
};

static u32 add_span(struct job *job, u32 rank, u8 kind, u16 lane, i64 start, i64 end) {
  u32 index = job->n_spans[rank]++;
  job->spans[rank][index] = (struct span){.start = start,
                                          .end = end,
                                          .link = INDEX_NONE,
                                          .launch = INDEX_NONE,
                                          .kind = kind,
                                          .lane = lane};
  return index;
}

static void work(struct job *job, u32 rank, i64 from, i64 until) {
  if (until > from)
    job->spans[rank][add_span(job, rank, SPAN_PHASE, LANE_HOST, from, until)].category =
        TSCOPE_PHASE_FORWARD;
}

/* One rank's side of a meeting: where it called, and where it ran. A message's sender is the first
 * of its arrivals. Returns the span of its run. */
static u32 add_run(struct job *job, u32 meeting, u32 rank, u32 sender, struct interval call,
                   i64 start, i64 end) {
  u8 op = job->collectives[meeting].op;
  u32 place = op == TSCOPE_OP_SEND ? rank != sender : rank;
  u32 arrival = job->collectives[meeting].first_arrival + place;
  job->arrivals[arrival] =
      (struct arrival){.call_start = call.start,
                       .call_end = call.end,
                       .start = start,
                       .end = end,
                       .rank = rank,
                       .collective = meeting,
                       .step = job->collectives[meeting].step,
                       .op = op == TSCOPE_OP_SEND && rank != sender ? TSCOPE_OP_RECV : op};
  u32 called = add_span(job, rank, SPAN_COLL_CALL, LANE_HOST, call.start, call.end);
  u32 run = add_span(job, rank, SPAN_COLLECTIVE, LANE_GLOO, start, end);
  job->spans[rank][run].link = arrival;
  job->spans[rank][run].launch = called;
  return run;
}

static void wait_for(struct job *job, u32 rank, u32 run, i64 start, i64 end) {
  u32 wait = add_span(job, rank, SPAN_COMM_WAIT, LANE_HOST, start, end);
  job->edges[rank][job->n_edges[rank]++] =
      (struct edge){.from = run, .to = wait, .kind = EDGE_SYNC};
  intervals_append(&job->comms[rank], start, end);
}

/* Called at one time, and waited for at another, while it runs. */
static void add_side(struct job *job, u32 meeting, u32 rank, u32 sender, struct interval call,
                     i64 start, i64 end) {
  u32 run = add_run(job, meeting, rank, sender, call, start, end);
  work(job, rank, call.end, start);
  wait_for(job, rank, run, start, end);
}

static u32 add_meeting(struct job *job, u32 step, u8 op, i64 last_start) {
  u32 meeting = job->model.n_collectives++, members = op == TSCOPE_OP_SEND ? 2 : job->n_ranks;
  job->collectives[meeting] = (struct collective){.bytes = 1000,
                                                  .count = 1000,
                                                  .first_arrival = job->model.n_arrivals,
                                                  .n_arrivals = members,
                                                  .last_start = last_start,
                                                  .step = (i32)step,
                                                  .op = op,
                                                  .complete = true};
  job->model.n_arrivals += members;
  return meeting;
}

/* All ranks end the step together. */
static void end_step(struct job *job, u32 step, i64 begin, const i64 *done) {
  i64 meet = MOST_OF(i64, done, job->n_ranks, one, *one), end = meet + CALL + TRANSFER;
  u32 meeting = add_meeting(job, step, TSCOPE_OP_ALLREDUCE, meet + CALL);
  for (u32 rank = 0; rank < job->n_ranks; rank++) {
    struct interval call = {done[rank], done[rank] + CALL};
    add_side(job, meeting, rank, 0, call, call.end, end);
    job->begin[step * job->n_ranks + rank] = begin;
    job->end[step * job->n_ranks + rank] = end;
  }
}

static i64 begin_of_step(const struct job *job, u32 step) {
  return step ? job->end[step * job->n_ranks - 1] : 0;
}

/* Rank 0 works for 10 ms, sends, works for 60 ms, and receives. Rank 1 works for 80 ms, sends,
 * receives what has long been there, works for 30 ms, and sees whether its own was taken. */
static void play_crossing(struct job *job, u32 step) {
  i64 begin = begin_of_step(job, step);
  struct interval sends[] = {{begin + 10 * MS, begin + 10 * MS + CALL},
                             {begin + 80 * MS, begin + 80 * MS + CALL}};
  struct interval receives[] = {{sends[0].end + 60 * MS, sends[0].end + 60 * MS + CALL},
                                {sends[1].end, sends[1].end + CALL}};
  i64 taken[] = {receives[1].end + TRANSFER, sends[1].end + TRANSFER};
  i64 done[] = {taken[1], taken[0] + 30 * MS + CALL};
  u32 there = add_meeting(job, step, TSCOPE_OP_SEND, receives[1].end);
  u32 back = add_meeting(job, step, TSCOPE_OP_SEND, sends[1].end);
  work(job, 0, begin, sends[0].start);
  add_run(job, there, 0, 0, sends[0], sends[0].start, sends[0].end);
  work(job, 0, sends[0].end, receives[0].start);
  add_side(job, back, 0, 1, receives[0], receives[0].end, taken[1]);
  work(job, 1, begin, sends[1].start);
  u32 sent = add_run(job, back, 1, 1, sends[1], sends[1].start, sends[1].end);
  add_side(job, there, 1, 0, receives[1], receives[1].end, taken[0]);
  work(job, 1, taken[0], done[1] - CALL);
  wait_for(job, 1, sent, done[1] - CALL, done[1]);
  end_step(job, step, begin, done);
}

/* A sender works and sends. Its receiver works for 30 ms, calls its receive, and needs it later.
 * The message goes when both have called. Then each works, and all meet. */
static void play_step(struct job *job, u32 step) {
  i64 begin = begin_of_step(job, step), done[RANKS];
  for (u32 from = 0, pairs = job->n_ranks / 2; from < pairs; from++) {
    u32 to = pairs + from;
    i64 sends_at = begin + job->sends_at + job->later[from];
    i64 receives_at = begin + 30 * MS + job->later[to];
    struct interval send = {sends_at, sends_at + job->send_call};
    struct interval receive = {receives_at, receives_at + CALL};
    i64 taken = MAX(send.end, receive.end) + TRANSFER;
    i64 needed = receive.end + job->needed_after;
    i64 received = MAX(needed + TRANSFER / 2, taken);
    u32 meeting = add_meeting(job, step, TSCOPE_OP_SEND, MAX(needed, send.end));
    done[from] = taken + job->works_then[0];
    done[to] = received + job->works_then[1];
    work(job, from, begin, send.start);
    add_side(job, meeting, from, from, send, send.end, taken);
    work(job, from, taken, done[from]);
    work(job, to, begin, receive.start);
    add_side(job, meeting, to, from, receive, needed, received);
    work(job, to, received, done[to]);
  }
  end_step(job, step, begin, done);
}

static int load(const struct model *model, u32 rank, struct timeline *timeline) {
  struct job *job = (struct job *)model->internal;
  static struct lane lanes[] = {{false, 0, "main"}, {true, 0, "gloo"}};
  *timeline = (struct timeline){.rank = rank,
                                .spans = job->spans[rank],
                                .n_spans = job->n_spans[rank],
                                .edges = job->edges[rank],
                                .n_edges = job->n_edges[rank],
                                .lanes = lanes,
                                .n_lanes = 2,
                                .comm = job->comms[rank],
                                .has_compute = true,
                                .has_comm = true,
                                .has_memcpy = true,
                                .ring_begin = NS_UNKNOWN};
  return 0;
}

static void release(struct timeline *timeline) {
  (void)timeline;
}

static struct results *analyse_job(struct job *job) {
  struct model *m = &job->model;
  m->run = "synthetic";
  m->internal = (void *)job;
  m->world_size = m->n_ranks = job->n_ranks = job->n_ranks ? job->n_ranks : 2;
  m->ranks = job->ranks;
  m->comms = &job->comm;
  m->n_comms = 1;
  m->collectives = job->collectives;
  m->arrivals = job->arrivals;
  m->clock_aligned = true;
  m->clock_residual_us = 0.001;
  m->steps = (struct steps){
      .n = STEPS, .method = "step marks", .confidence = 1, .begin = job->begin, .end = job->end};
  job->comm =
      (struct comm){.size = job->n_ranks, .members = job->members, .backend = TSCOPE_BACKEND_GLOO};
  for (u32 i = 0; i < job->n_ranks; i++) {
    job->members[i] = i;
    job->comms[i].at = job->busy[i];
    job->ranks[i] =
        (struct rank){.rank = i, .host = "node", .clock = {.aligned = true}, .closed = true};
  }
  for (u32 step = 0; step < STEPS; step++)
    (job->crossing ? play_crossing : play_step)(job, step);
  for (u32 i = 0; i < STEPS * job->n_ranks; i++)
    job->phases[i] =
        (struct phase_times){NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, NS_UNKNOWN, .other = 10 * MS};
  m->phases = job->phases;
  m->end = job->end[STEPS * job->n_ranks - 1];
  struct analyse_options options = no_options();
  const struct timeline_source source = {load, release};
  return analyse_with(m, &options, &source);
}

/* What the sender waits is the receiver's work until it calls, and no transfer, though the receiver
 * waits for the message only when the sender has long gone on. */
static void a_sender_waits_until_the_receiver_calls(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->sends_at = 10 * MS;
  job->send_call = CALL;
  job->needed_after = 20 * MS;
  job->works_then[0] = 40 * MS;
  struct results *r = analyse_job(job);
  assert_float_equal(r->step_mean_ms, 70.22, 1e-6);
  assert_float_equal(r->path_selfcheck, 0, 1e-9);
  assert_float_equal(path_ms(r, "communication"), 0.2, 1e-6);
  assert_float_equal(path_ms(r, "compute"), 70, 1e-6);
  assert_float_equal(saved_ms(r, WHAT_IF_COMMUNICATION), 0.2, 1e-6);
  assert_null(finding_of(r, "DIST.COMM_BOUND"));
  results_free(r);
  free(job);
}

/* The sender calls first, but has no core, so that its call ends last: the message goes then. The
 * call is no work of the program's outside the phases. */
static void a_receiver_waits_until_the_sender_has_called(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->sends_at = 29 * MS;
  job->send_call = 6 * MS;
  job->works_then[1] = 40 * MS;
  struct results *r = analyse_job(job);
  assert_float_equal(r->step_mean_ms, 29 + 6 + 40 + 0.21, 1e-6);
  assert_float_equal(r->path_selfcheck, 0, 1e-9);
  assert_null(r->what_if_reason);
  assert_float_equal(path_ms(r, "communication"), 0.2, 1e-6);
  assert_float_equal(saved_ms(r, WHAT_IF_COMMUNICATION), 0.2, 1e-6);
  assert_float_equal(saved_ms(r, WHAT_IF_OUTSIDE), 0, 0.03);
  results_free(r);
  free(job);
}

/* Who has sent goes on, and receives the next message, whether the other has called for his or not.
 * If both work as long as rank 0, 70 ms, rank 1 sends after 51. */
static void who_has_sent_goes_on(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->crossing = true;
  struct results *r = analyse_job(job);
  assert_float_equal(r->step_mean_ms, 80 + 30 + 0.25, 0.1);
  assert_float_equal(r->path_selfcheck, 0, 1e-9);
  assert_null(r->what_if_reason);
  assert_float_equal(saved_ms(r, WHAT_IF_EVERY_RANK), 40, 0.2);
  results_free(r);
  free(job);
}

/* Of two pairs the sender of one works 16 ms longer before it sends: its step gets shorter by
 * these, as what its receiver works then takes longer than what it works itself. */
static void a_sender_that_is_slow_before_it_sends(void **state) {
  (void)state;
  struct job *job = calloc(1, sizeof(*job));
  job->n_ranks = 4;
  job->sends_at = 40 * MS;
  job->send_call = CALL;
  job->works_then[0] = 30 * MS;
  job->works_then[1] = 60 * MS;
  job->later[1] = 16 * MS;
  struct results *r = analyse_job(job);
  assert_float_equal(r->step_mean_ms, 40 + 16 + 60 + 0.22, 1e-6);
  assert_float_equal(saved_ms(r, WHAT_IF_RANK), 16, 0.1);
  results_free(r);
  free(job);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_sender_waits_until_the_receiver_calls),
                                     cmocka_unit_test(who_has_sent_goes_on),
                                     cmocka_unit_test(a_receiver_waits_until_the_sender_has_called),
                                     cmocka_unit_test(a_sender_that_is_slow_before_it_sends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
