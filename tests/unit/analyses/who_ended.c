/* SPDX-License-Identifier: MIT
 *
 * Who ended a run whose launcher tells nothing: traces stop, and only some ranks had time to say
 * why. Written by hand: each rank calls all-reduces of one group, a millisecond after the other.
 */
#include "model_support.h"

#include <signal.h>

#include "analyse_cluster.h"
#include "base/texts.h"
#include "format/dtypes.h"
#include "import/tscope/trace_source.h"

enum { MOST = 4, CALLS = 10, SMALL = 16, LARGE = 4096 };

struct job {
  struct fixture *fixture;
  struct trace_writer *writers[MOST];
  u32 ranks, calls[MOST];
};

static const char reset[] = "RuntimeError: Connection closed by peer [127.0.0.1]:6060";

static struct tscope_collective_record *call(struct job *job, u32 rank, u64 bytes) {
  u32 seq = job->calls[rank]++;
  struct tscope_collective_record *call =
      write_call(job->writers[rank], (seq + 1) * MS, TSCOPE_OP_ALLREDUCE, 1, seq);
  call->bytes = bytes;
  call->count = bytes / 4;
  call->stream = TSCOPE_NO_STREAM;
  return call;
}

/* All ranks make these calls; then each shows that it lives until `alive`. */
static struct job new_job(void **state, u32 ranks, i64 alive) {
  struct job job = {.fixture = *state, .ranks = ranks};
  for (u32 r = 0; r < ranks; r++) {
    job.writers[r] = new_rank(r, ranks);
    struct tscope_file_header *header = trace_writer_header(job.writers[r]);
    header->closed_realtime_ns = 0;
    header->alive_ticks = AT(alive);
    write_comm(job.writers[r], 1, 42, r, ranks, TSCOPE_BACKEND_GLOO);
    for (u32 i = 0; i < CALLS; i++)
      call(&job, r, SMALL);
  }
  return job;
}

static void lived_until(struct job *job, u32 rank, i64 alive) {
  trace_writer_header(job->writers[rank])->alive_ticks = AT(alive);
}

static void wrote(struct job *job, u32 rank, const char *exception, i64 at) {
  struct tscope_file_header *header = trace_writer_header(job->writers[rank]);
  header->exception_ticks = AT(at);
  snprintf(header->exception, sizeof(header->exception), "%s", exception);
}

static void exited(struct job *job, u32 rank, i32 status, i64 at) {
  struct tscope_file_header *header = trace_writer_header(job->writers[rank]);
  header->alive_ticks = header->end_ticks = AT(at);
  header->end_kind = TSCOPE_END_EXIT;
  header->end_status = status;
}

struct expected {
  u32 culprit;       /* or the number of ranks: nobody is named */
  const char *says;  /* in the summary */
  const char *calls; /* what is said of its calls; NULL: nothing */
  u32 n;             /* so many, from that one on; 0: one */
};

static void expect(struct job *job, const struct expected *expected) {
  for (u32 r = 0; r < job->ranks; r++)
    save_rank(job->fixture, job->writers[r]);
  struct model *model = load(job->fixture->directory, NULL);
  struct analyse_options options = no_options();
  struct results *results = analyse(model, &options);
  const struct run_end *end = &results->run_end;
  u32 n = expected->n ? expected->n : 1;
  assert_int_equal(end->n_culprits, expected->culprit < job->ranks ? n : 0);
  if (end->n_culprits)
    assert_int_equal(end->culprits[0], expected->culprit);
  if (expected->says && !strstr(text_or_empty(end->summary), expected->says))
    fail_msg("%s", text_or_empty(end->summary));
  assert_int_equal(end->cause == END_CALLS_DIFFER, expected->calls != NULL);
  if (expected->calls && !(end->calls && strstr(end->calls, expected->calls)))
    fail_msg("%s", end->calls ? end->calls : "nothing");
  results_free(results);
  model_free(model);
}

/* Rank 1 leaves; rank 2 loses it and exits, and then the launcher kills rank 0, which was about to.
 */
static void who_is_killed_after_it_lost_a_peer_is_no_culprit(void **state) {
  struct job job = new_job(state, 3, 20 * MS);
  call(&job, 0, SMALL);
  call(&job, 2, SMALL);
  exited(&job, 1, 0, 300 * MS);
  wrote(&job, 2, reset, 22 * MS);
  exited(&job, 2, 1, 600 * MS);
  wrote(&job, 0, reset, 22 * MS);
  lived_until(&job, 0, 900 * MS);
  expect(&job, &(struct expected){.culprit = 1, .says = "ended normally"});
}

/* The same, if rank 0 never said anything: it lived when rank 2 had lost its peer. */
static void who_outlives_the_loss_is_no_culprit(void **state) {
  struct job job = new_job(state, 3, 20 * MS);
  call(&job, 2, SMALL);
  exited(&job, 1, 0, 300 * MS);
  wrote(&job, 2, reset, 22 * MS);
  exited(&job, 2, 1, 600 * MS);
  lived_until(&job, 0, 900 * MS);
  expect(&job, &(struct expected){.culprit = 1, .says = "ended normally"});
}

static void ran(struct job *job, u32 rank, u32 seq, u64 dur) {
  struct tscope_collective_run_record *run = trace_add(
      job->writers[rank], retained, AT((seq + 1) * MS), TSCOPE_REC_COLLECTIVE_RUN, 1, sizeof(*run));
  run->dur = dur;
  run->comm = 1;
  run->seq = seq;
}

/* Its runs of the first calls end with those of its peers, which ties the clock of its host to
 * theirs. */
static void is_on_host(struct job *job, u32 rank, u32 host) {
  struct tscope_file_header *header = trace_writer_header(job->writers[rank]);
  snprintf(header->host, sizeof(header->host), "host%u", host);
  for (u32 seq = 0; seq < CALLS; seq++)
    ran(job, rank, seq, MS / 10);
}

/* All of a host is killed within some milliseconds. Rank 2 had come to a call, for which rank 3 had
 * not: it waited for that one, and did not only follow. If it lives longer, it did. */
static void a_host_is_lost_with_all_its_ranks(void **state) {
  for (u32 lives = 0; lives < 2; lives++) {
    struct job job = new_job(state, 4, 20 * MS);
    for (u32 r = 0; r < 4; r++)
      is_on_host(&job, r, r / 2);
    for (u32 r = 0; r < 3; r++)
      call(&job, r, SMALL);
    lived_until(&job, 2, lives ? 900 * MS : 20 * MS);
    lived_until(&job, 3, 24 * MS);
    for (u32 r = 0; r < 2; r++) {
      wrote(&job, r, reset, 30 * MS);
      exited(&job, r, 1, 600 * MS);
    }
    struct expected lost = {2, "all ranks of host host1 fell silent", .n = 2};
    struct expected killed = {3, "Rank 3"};
    expect(&job, lives ? &killed : &lost);
  }
}

/* Rank 1 leaves while the others are in a call, which ends only when they are killed. */
static void who_leaves_its_peers_waiting_is_named(void **state) {
  struct job job = new_job(state, 3, 5000 * MS);
  call(&job, 0, SMALL);
  call(&job, 2, SMALL);
  exited(&job, 1, 0, 300 * MS);
  expect(&job, &(struct expected){.culprit = 1, .says = "ended normally"});
}

static void stopped(struct job *job, u32 rank, i64 at) {
  lived_until(job, rank, at);
  trace_writer_header(job->writers[rank])->reaped_signal = SIGTERM;
}

/* Rank 0 had sent rank 2 messages, and receives from rank 1, which leaves: it waits for that one,
 * whatever the numbers of its messages. Rank 2 tells of a loss, too, and was needed by nobody that
 * lost one. */
static void who_waits_for_a_message_waits_for_its_other_end(void **state) {
  for (u32 leaver = 1; leaver <= 3; leaver += 2) {
    struct job job = new_job(state, 4, 20 * MS);
    for (u32 seq = 0; seq <= 20; seq++) {
      struct tscope_collective_record *message =
          write_call(job.writers[0], 12 * MS + seq, TSCOPE_OP_RECV, 1, seq);
      message->peer = (i32)leaver;
      message->stream = TSCOPE_NO_STREAM;
      message->dur = 5000 * MS;
      if (seq == 20)
        continue;
      message = write_call(job.writers[leaver], 12 * MS + seq, TSCOPE_OP_SEND, 1, seq);
      message->peer = 0;
      message->stream = TSCOPE_NO_STREAM;
    }
    u32 other = leaver == 1 ? 3 : 1;
    call(&job, 2, SMALL)->dur = 4900 * MS;
    call(&job, other, SMALL)->dur = 4900 * MS;
    exited(&job, leaver, 0, 6000 * MS);
    wrote(&job, 0, reset, 5020 * MS);
    exited(&job, 0, 1, 5900 * MS);
    wrote(&job, 2, reset, 5010 * MS);
    exited(&job, 2, 1, 5910 * MS);
    stopped(&job, other, 9000 * MS);
    expect(&job, &(struct expected){.culprit = leaver, .says = "ended normally"});
  }
}

static void expect_silent(const struct model *model, bool silent) {
  SCOPED_ARENA struct arena arena = {0};
  const struct flight_record *flight = trace_flight_record(model, &arena);
  assert_int_equal(flight->ranks[1].silent, silent);
  assert_false(flight->ranks[0].silent);
}

/* While a job runs, a rank is silent when tscope top says so: after 3 s, on another host after a
 * minute. Those of a job that is over were ended one after the other. */
static void a_running_job_has_silent_ranks_as_in_top(void **state) {
  struct job job = new_job(state, 2, 100000 * MS);
  lived_until(&job, 1, 95000 * MS);
  for (u32 r = 0; r < job.ranks; r++)
    save_rank(job.fixture, job.writers[r]);
  struct model *model = load(job.fixture->directory, NULL);
  expect_silent(model, false);
  model->ranks[0].running = 'S';
  expect_silent(model, true);
  model->ranks[1].may_run = true;
  expect_silent(model, false);
  model_free(model);
}

static void interrupted(struct job *job, u32 rank, i64 at, i64 end) {
  struct tscope_file_header *header = trace_writer_header(job->writers[rank]);
  wrote(job, rank, "KeyboardInterrupt", at);
  header->alive_ticks = AT(end);
  header->reaped_signal = SIGINT;
}

static void was_killed(struct job *job, u32 rank, i64 at) {
  lived_until(job, rank, at);
  trace_writer_header(job->writers[rank])->reaped_signal = SIGKILL;
}

/* A terminal interrupts all. All but rank 0 were a call ahead, and notice only that its connections
 * close: on a busy machine it takes seconds more to end. It held up nobody. */
static void who_is_interrupted_at_work_held_up_nobody(void **state) {
  struct job job = new_job(state, 4, 15 * MS);
  interrupted(&job, 0, 15 * MS, 3000 * MS);
  for (u32 r = 1; r < 4; r++) {
    call(&job, r, SMALL);
    wrote(&job, r, reset, 2900 * MS);
    exited(&job, r, 1, 2910 * MS);
  }
  expect(&job, &(struct expected){.culprit = job.ranks, .says = NULL});
}

/* The others had waited for rank 1 for seconds when the terminal interrupted all. Python tells of
 * the interrupt, or of the loss, when the call ends. The launcher may kill one that is still
 * ending.
 */
static void who_is_interrupted_while_others_wait_held_them_up(void **state) {
  for (u32 kind = 0; kind < 4; kind++) {
    bool lost = kind & 1, killed = kind & 2;
    struct job job = new_job(state, 4, 5000 * MS);
    for (u32 r = 0; r < 4; r++) {
      if (r == 1)
        continue;
      call(&job, r, SMALL);
      ran(&job, r, CALLS, 5000 * MS);
      if (lost) {
        wrote(&job, r, reset, 5010 * MS);
        exited(&job, r, 1, 5020 * MS);
      } else {
        interrupted(&job, r, 5010 * MS, 5100 * MS);
      }
      if (killed && r == 3)
        was_killed(&job, r, 35000 * MS);
    }
    interrupted(&job, 1, 5000 * MS, 5200 * MS);
    expect(&job, &(struct expected){.culprit = 1, .says = "held up"});
  }
}

/* The same, but the others wait where no signal is seen, until the launcher kills them. Whoever is
 * interrupted at work held up nobody then, either. */
static void who_is_killed_long_after_an_interrupt_ended_nothing(void **state) {
  for (u32 held_up = 0; held_up < 2; held_up++) {
    i64 at = held_up ? 5000 * MS : 15 * MS;
    struct job job = new_job(state, 4, 5000 * MS);
    for (u32 r = 0; r < 4; r++)
      if (r != 1) {
        call(&job, r, SMALL)->dur = ~0ull;
        was_killed(&job, r, 35000 * MS);
      }
    interrupted(&job, 1, at, at + 200 * MS);
    expect(&job, &(struct expected){.culprit = held_up ? 1 : job.ranks,
                                    .says = held_up ? "held up" : NULL});
  }
}

/* All are in the broadcast, and rank 1 takes another one for its root. */
static void who_has_another_root_held_them_up(void **state) {
  struct job job = new_job(state, 4, 5000 * MS);
  for (u32 r = 0; r < 4; r++) {
    struct tscope_collective_record *broadcast =
        write_call(job.writers[r], 20 * MS, TSCOPE_OP_BROADCAST, 1, CALLS);
    broadcast->peer = r == 1 ? 2 : 0;
    broadcast->dur = ~0ull;
    broadcast->stream = TSCOPE_NO_STREAM;
    stopped(&job, r, (5000 + r) * MS);
  }
  expect(&job, &(struct expected){.culprit = 1, .says = "Rank 1 held up the job"});
}

/* Rank 0 waits in no call, so nothing says that rank 1 was needed. */
static void who_leaves_before_the_others_end_is_not_named(void **state) {
  struct job job = new_job(state, 3, 5000 * MS);
  call(&job, 2, SMALL);
  exited(&job, 1, 0, 300 * MS);
  expect(&job, &(struct expected){.culprit = job.ranks, .says = NULL});
}

/* Nothing says that the others waited for it. */
static void who_left_before_the_others_were_stopped_is_told(void **state) {
  struct job job = new_job(state, 3, 5300 * MS);
  for (u32 r = 0; r < 3; r++)
    ran(&job, r, CALLS - 1, MS / 10);
  exited(&job, 1, 0, 300 * MS);
  for (u32 r = 0; r < 3; r += 2)
    stopped(&job, r, 5300 * MS);
  expect(&job, &(struct expected){job.ranks,
                                  "Rank 1 had ended normally 5.00 s before the next; whether"});
}

/* All are killed within a tenth of a second, but rank 2 had time to write that it lost one. */
static void who_dies_first_is_named_by_the_last_words_of_its_peer(void **state) {
  for (u32 written = 0; written <= 1; written++) {
    struct job job = new_job(state, 3, 120 * MS);
    call(&job, 0, SMALL);
    call(&job, 2, SMALL);
    lived_until(&job, 1, 80 * MS);
    if (written)
      wrote(&job, 2, reset, 130 * MS);
    expect(&job, &(struct expected){.culprit = written ? 1 : job.ranks,
                                    .says = written ? "ended first" : NULL});
  }
}

/* All are killed together, on a busy machine. If others waited for the first, it was killed alone.
 */
static void who_is_killed_with_all_others_is_not_named(void **state) {
  for (u32 waited = 0; waited <= 1; waited++) {
    struct job job = new_job(state, 3, 400 * MS);
    lived_until(&job, 1, 80 * MS);
    for (u32 r = 0; r < 3; r += 2)
      if (waited)
        call(&job, r, SMALL)->dur = ~0ull;
    expect(&job,
           &(struct expected){
               .culprit = waited ? 1 : job.ranks,
               .says = waited ? "first in step 10, after all_reduce 9 of 002a (3 ranks)" : NULL});
  }
}

/* It wrote this between its calls, and went on: it was caught. */
static void an_exception_before_the_last_call_says_nothing(void **state) {
  struct job job = new_job(state, 3, 120 * MS);
  call(&job, 2, SMALL);
  wrote(&job, 2, reset, 5 * MS);
  lived_until(&job, 1, 80 * MS);
  expect(&job, &(struct expected){.culprit = job.ranks, .says = NULL});
}

/* Rank 1 raised something, and hung in its end until all were killed. */
static void who_hangs_after_an_exception_is_named(void **state) {
  struct job job = new_job(state, 3, 9000 * MS);
  call(&job, 0, SMALL)->dur = ~0ull;
  call(&job, 2, SMALL)->dur = ~0ull;
  wrote(&job, 1, "ValueError: no label", 15 * MS);
  expect(&job, &(struct expected){.culprit = 1, .says = "after it wrote ValueError: no label"});
}

static void was_seen(struct job *job, u32 rank, i64 at) {
  struct tscope_file_header *header = trace_writer_header(job->writers[rank]);
  header->reaped_realtime_ns = header->start_realtime_ns + (u64)at;
}

/* Somebody stops rank 1. Its launcher looks seconds later, when the others have told of the loss
 * and one still waits, and stops these. If nobody told anything, all may have been stopped. */
static void who_was_stopped_long_before_its_launcher_looked_is_named(void **state) {
  for (u32 told = 0; told < 2; told++) {
    struct job job = new_job(state, 4, 20 * MS);
    for (u32 r = 0; r < 4; r++) {
      if (r != 1)
        call(&job, r, SMALL)->dur = r == 3 ? ~0ull : 20 * MS;
      if (told && r != 1 && r != 3)
        wrote(&job, r, reset, 200 * MS);
      stopped(&job, r, r == 1 ? 20 * MS : 3000 * MS);
      was_seen(&job, r, (3010 + r) * MS);
    }
    expect(&job,
           &(struct expected){.culprit = told ? 1 : job.ranks, .says = told ? "SIGTERM" : NULL});
  }
}

/* Ranks 1 and 2 raise the same; the launcher stops all when rank 1 has ended, and the interpreter
 * of rank 2 is still ending. Rank 2 is no culprit if it had called something since, or had waited
 * for rank 1 and raised what tells of that in words that nobody knows. */
static void who_is_stopped_at_the_end_of_its_interpreter_is_named_too(void **state) {
  enum { RAISED, CAUGHT, WAITED, KINDS };
  for (u32 kind = 0; kind < KINDS; kind++) {
    struct job job = new_job(state, 4, 20 * MS);
    call(&job, 0, SMALL);
    call(&job, 3, SMALL);
    for (u32 r = 1; r <= 2; r++)
      wrote(&job, r, "ValueError: no label",
            kind == CAUGHT && r == 2 ? 5 * MS : (i64)(12 + r) * MS);
    if (kind == WAITED)
      call(&job, 2, SMALL);
    exited(&job, 1, 1, 300 * MS);
    for (u32 r = 0; r < 4; r++)
      if (r != 1)
        stopped(&job, r, (i64)(2000 + r) * MS);
    expect(&job, &(struct expected){.culprit = 1, .says = "no label", .n = kind == RAISED ? 2 : 1});
  }
}

static const char larger[] = "rank 1 called all_reduce of 4096 bytes where its peers called "
                             "all_reduce of 16 (call number 10";

/* The job hangs because rank 1 made another call. Its launcher is told to stop, stops all, and is
 * stopped itself when it has seen the end of rank 0 only. The last sign of life of one may be
 * earlier than that of another: nobody fell silent before. */
static void who_held_up_a_job_that_is_stopped_did_not_fall_silent(void **state) {
  for (u32 earlier = 1; earlier <= 2; earlier++) {
    struct job job = new_job(state, 3, 5000 * MS);
    for (u32 r = 0; r < 3; r++) {
      call(&job, r, r == 1 ? LARGE : SMALL);
      ran(&job, r, CALLS, 5000 * MS);
      lived_until(&job, r, (r == earlier ? 4950 : 5040) * MS);
    }
    stopped(&job, 0, 5020 * MS);
    was_seen(&job, 0, 7000 * MS);
    expect(&job, &(struct expected){.culprit = 1, .says = "Rank 1", .calls = larger});
  }
}

/* Rank 0 waits for rank 2 in a monitored barrier, and gives up; the others lose rank 0. */
static void who_passes_a_monitored_barrier_is_no_culprit(void **state) {
  struct job job = new_job(state, 3, 5000 * MS);
  wrote(&job, 0, "RuntimeError: [Rank 0]: Rank 2 failed to pass monitoredBarrier in 8000 ms",
        5000 * MS);
  wrote(&job, 1,
        "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        4990 * MS);
  for (u32 r = 0; r < 2; r++)
    exited(&job, r, 1, 5500 * MS);
  stopped(&job, 2, 6000 * MS);
  expect(&job, &(struct expected){.culprit = job.ranks, .says = NULL});
}

/* Rank 1 reduces more than the others, and gloo aborts rank 0 for that. */
static void who_makes_another_call_is_named_before_the_one_that_it_aborts(void **state) {
  struct job job = new_job(state, 3, 20 * MS);
  for (u32 r = 0; r < 3; r++)
    call(&job, r, r == 1 ? LARGE : SMALL);
  for (u32 r = 1; r < 3; r++) {
    wrote(&job, r, reset, 100 * MS);
    exited(&job, r, 1, 900 * MS);
  }
  expect(&job, &(struct expected){1, "Connection closed", larger});
}

/* The same among four, of which rank 0 never came so far: its list agrees with all others. */
static void a_short_list_is_not_the_usual_one(void **state) {
  struct job job = new_job(state, 4, 20 * MS);
  for (u32 r = 1; r < 4; r++)
    call(&job, r, r == 1 ? LARGE : SMALL);
  for (u32 r = 0; r < 4; r++) {
    wrote(&job, r, reset, 100 * MS);
    exited(&job, r, 1, 900 * MS);
  }
  expect(&job, &(struct expected){1, "Connection closed", larger});
}

/* Whichever rank left no record, it is there among the ends, once, and when it ended is not told.
 */
static void each_rank_without_a_record_is_there(void **state) {
  for (u32 kind = 0; kind < 6; kind++) {
    u32 without = kind / 2;
    bool in_order = kind % 2;
    struct job job = new_job(state, 3, 20 * MS);
    u32 there = 0;
    for (u32 r = 0; r < 3; r++) {
      if (!in_order)
        wrote(&job, r, reset, 100 * MS);
      exited(&job, r, !in_order, 900 * MS);
      if (r != without)
        save_rank(job.fixture, job.writers[r]);
      else
        trace_writer_free(job.writers[r]);
    }
    struct model *model = load(job.fixture->directory, NULL);
    struct analyse_options options = no_options();
    struct results *results = analyse(model, &options);
    FOR_EACH(results->run_end.ranks, results->run_end.n_ranks, row)
      there += row->rank == without && row->how == RANK_END_NO_RECORD;
    assert_int_equal(results->run_end.n_ranks, 3);
    assert_int_equal(there, 1);
    assert_null(strstr(text_or_empty(results->run_end.summary), "before the next"));
    results_free(results);
    model_free(model);
    drop_fixture(state);
    make_fixture(state);
  }
}

/* As children that Python forks end, and some programs on purpose. */
/* Rank 0 waits for rank 1 and loses it. Rank 2 ends then too: it raises something else, its trace
 * stops, or it exits; and it has waited for nobody. */
static void whoever_ends_beside_a_culprit_is_told_with_its_own_reason(void **state) {
  static const char *const says[] = {
      "rank 1: ValueError: no label (exit status 1); rank 2: KeyError: 'b' (exit status 1). Rank 0 "
      "only followed.",
      "ValueError: no label (exit status 1). Rank 0 only followed. Of rank 2 it is not known "
      "whether "
      "it followed.",
      "Rank 0 only followed. Of rank 2 it is not known whether it followed."};
  for (u32 way = 0; way < LENGTH_OF(says); way++) {
    struct job job = new_job(state, 3, 305 * MS);
    call(&job, 0, SMALL)->dur = ~0ull;
    wrote(&job, 0, reset, 330 * MS);
    exited(&job, 0, 1, 340 * MS);
    if (way < 2) {
      wrote(&job, 1, "ValueError: no label", 300 * MS);
      exited(&job, 1, 1, 310 * MS);
    } else {
      lived_until(&job, 1, 100 * MS);
    }
    if (way == 0)
      wrote(&job, 2, "KeyError: 'b'", 302 * MS);
    if (way != 1)
      exited(&job, 2, way ? 3 : 1, 312 * MS);
    expect(&job, &(struct expected){.culprit = 1, .says = says[way], .n = way ? 1 : 2});
  }
}

static void who_leaves_by_exit_at_once_ended(void **state) {
  struct job job = new_job(state, 2, 20 * MS);
  for (u32 r = 0; r < 2; r++) {
    exited(&job, r, 0, 20 * MS);
    trace_writer_header(job.writers[r])->end_kind = TSCOPE_END_AT_ONCE;
    save_rank(job.fixture, job.writers[r]);
  }
  struct model *model = load(job.fixture->directory, NULL);
  struct analyse_options options = no_options();
  struct results *results = analyse(model, &options);
  const struct finding *partial = finding_of(results, "DATA.PARTIAL");
  assert_true(!partial || !strstr(partial->title, "did not end"));
  assert_int_equal(results->n_partial_ranks, 0);
  results_free(results);
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(who_leaves_by_exit_at_once_ended),
      WITH_FOLDER(whoever_ends_beside_a_culprit_is_told_with_its_own_reason),
      WITH_FOLDER(each_rank_without_a_record_is_there),
      WITH_FOLDER(who_is_killed_after_it_lost_a_peer_is_no_culprit),
      WITH_FOLDER(who_outlives_the_loss_is_no_culprit),
      WITH_FOLDER(a_host_is_lost_with_all_its_ranks),
      WITH_FOLDER(who_leaves_its_peers_waiting_is_named),
      WITH_FOLDER(who_waits_for_a_message_waits_for_its_other_end),
      WITH_FOLDER(who_has_another_root_held_them_up),
      WITH_FOLDER(who_leaves_before_the_others_end_is_not_named),
      WITH_FOLDER(who_left_before_the_others_were_stopped_is_told),
      WITH_FOLDER(who_is_interrupted_at_work_held_up_nobody),
      WITH_FOLDER(who_is_interrupted_while_others_wait_held_them_up),
      WITH_FOLDER(who_is_killed_long_after_an_interrupt_ended_nothing),
      WITH_FOLDER(who_dies_first_is_named_by_the_last_words_of_its_peer),
      WITH_FOLDER(who_is_killed_with_all_others_is_not_named),
      WITH_FOLDER(an_exception_before_the_last_call_says_nothing),
      WITH_FOLDER(who_hangs_after_an_exception_is_named),
      WITH_FOLDER(who_was_stopped_long_before_its_launcher_looked_is_named),
      WITH_FOLDER(who_held_up_a_job_that_is_stopped_did_not_fall_silent),
      WITH_FOLDER(who_passes_a_monitored_barrier_is_no_culprit),
      WITH_FOLDER(who_is_stopped_at_the_end_of_its_interpreter_is_named_too),
      WITH_FOLDER(who_makes_another_call_is_named_before_the_one_that_it_aborts),
      WITH_FOLDER(a_short_list_is_not_the_usual_one),
      WITH_FOLDER(a_running_job_has_silent_ranks_as_in_top),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
