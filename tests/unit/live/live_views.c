/* SPDX-License-Identifier: MIT
 *
 * Compares the live view of all ranks with generated runs whose times are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "live/live_view.h"
#include "model/building.h"
#include "model_support.h"
#include "tracegen.h"

static char folder[] = "/tmp/tscope-view-XXXXXX";

struct looking {
  struct tracegen_truth truth;
  struct live_run run;
  struct live_view view;
  char place[64];
};

static void begin(struct looking *looking, struct tracegen_options options) {
  static unsigned n;
  char why[256] = "";
  *looking = (struct looking){0};
  snprintf(looking->place, sizeof(looking->place), "%s/%u", folder, n++);
  options.directory = looking->place;
  assert_int_equal(tracegen_write(&options, &looking->truth), 0);
  looking->run = (struct live_run){.directory = looking->place};
  if (live_run_poll(&looking->run, why, sizeof(why)) != 0)
    fail_msg("%s", why);
  live_view_make(&looking->view, &looking->run);
}

static void end(struct looking *looking) {
  live_view_release(&looking->view);
  live_run_close(&looking->run);
  tracegen_truth_free(&looking->truth);
}

static double true_step_s(const struct tracegen_options *options, const struct looking *looking,
                          u32 step) {
  const u64 *begin_of = looking->truth.step_begin;
  return (double)(begin_of[(step + 1) * options->ranks] - begin_of[step * options->ranks]) / 1e9;
}

static void check_steps(struct tracegen_options options, const char *method) {
  struct looking looking;
  begin(&looking, options);
  assert_int_equal(looking.view.n_ranks, options.ranks);
  assert_string_equal(looking.view.step_method, method);
  double usual = true_step_s(&options, &looking, options.steps - 2);
  assert_true(fabs(looking.view.step_s - usual) < 0.03 * usual);
  end(&looking);
}

static void steps_are_as_long_as_they_were(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  check_steps(options, "collective period");
  options.step_marks = true;
  check_steps(options, "step marks");
  options = tracegen_defaults();
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  check_steps(options, "optimizer phases");
}

/* Some steps are much longer than most: the rate is that of all, the length that of most. */
static void uneven_steps_have_the_rate_of_all(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct looking looking;
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  options.steps = 100;
  options.slow_rank = 1;
  options.slow_factor = 10;
  options.slow_share = 0.2;
  begin(&looking, options);
  const u64 *begin_of = looking.truth.step_begin;
  double seconds = (double)(begin_of[(options.steps - 1) * options.ranks] - begin_of[0]) / 1e9;
  double rate = (options.steps - 1) / seconds;
  assert_true(fabs(looking.view.rate - rate) < 0.1 * rate);
  assert_true(rate < 0.7 / looking.view.step_s);
  end(&looking);
}

/* All ranks made as many steps; one of them goes on. */
static void a_rank_that_runs_stands_for_the_job(void **state) {
  enum { RUNS = 2 };
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct tscope_file_header header;
  struct looking looking;
  char why[256];
  begin(&looking, options);
  assert_int_equal(looking.view.reference->rank, 0);
  const char *path = looking.view.ranks[RUNS].process->trace.path;
  int fd = open(path, O_RDWR);
  assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
  header.closed_realtime_ns = header.alive_ticks = 0;
  header.end_kind = TSCOPE_END_UNSEEN;
  assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
  close(fd);
  live_view_release(&looking.view);
  assert_int_equal(live_run_poll(&looking.run, why, sizeof(why)), 0);
  live_view_make(&looking.view, &looking.run);
  assert_int_equal(looking.view.ranks[0].state, LIVE_ENDED);
  assert_int_equal(looking.view.reference->rank, RUNS);
  end(&looking);
}

/* The time when a rank could start the collective of its first bucket, minus that of the median
 * rank: the schedule gives the start of the collective and each rank's own work. */
static void the_slow_rank_is_late(void **state) {
  (void)state;
  for (int flavour = 0; flavour < 2; flavour++) {
    struct tracegen_options options = tracegen_defaults();
    struct looking looking;
    options.flavour = flavour ? TRACEGEN_GLOO : TRACEGEN_NCCL;
    options.phases = flavour != 0;
    options.ranks = 6;
    options.slow_rank = 4;
    options.slow_factor = 1.5;
    begin(&looking, options);
    for (u32 r = 0; r < options.ranks; r++) {
      const struct live_rank *rank = &looking.view.ranks[r];
      assert_int_equal(rank->late_by, flavour ? LIVE_ARRIVAL_CALL : LIVE_ARRIVAL_RUN);
      if (r == 4)
        assert_true(rank->late_s > 0.2e-3);
      else
        assert_true(fabs(rank->late_s) < 0.1e-3);
    }
    end(&looking);
  }
}

enum {
  ACROSS = 1,
  DOWN,
  MS = 1000000
}; /* communicators of ranks 0 1 and 2 3, and of 0 2 and 1 3 */

static void call_of(struct trace_writer *writer, u32 comm, u32 step, u64 at, u64 last) {
  struct tscope_collective_record *call = write_call(writer, at, TSCOPE_OP_ALLREDUCE, comm, step);
  call->stream = TSCOPE_NO_STREAM;
  call->dur = last - at + MS / 10;
}

/* Rank 0 works 4 ms longer before it meets rank 1. That one waits for it, and comes as late to rank
 * 3, which waits for it. Only rank 0 is late by itself. */
static void who_waited_in_another_communicator_is_not_late(void **state) {
  (void)state;
  char place[64], path[96], why[256] = "";
  struct live_run run = {.directory = place};
  struct live_view view;
  snprintf(place, sizeof(place), "%s/across", folder);
  assert_int_equal(mkdir(place, 0700), 0);
  for (u32 r = 0; r < 4; r++) {
    struct trace_writer *writer = new_rank(r, 4);
    write_comm(writer, ACROSS, 10 + r / 2, r % 2, 2, TSCOPE_BACKEND_GLOO);
    write_comm(writer, DOWN, 20 + r % 2, r / 2, 2, TSCOPE_BACKEND_GLOO);
    for (u32 step = 0; step < 20; step++) {
      u64 begin = (10 + 20 * step) * MS, met = r < 2 ? begin + 5 * MS : begin + MS;
      call_of(writer, ACROSS, step, r == 0 ? met : begin + MS, met);
      call_of(writer, DOWN, step, met + MS, begin + 6 * MS);
    }
    snprintf(path, sizeof(path), "%s/%u.tscope", place, r);
    assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
    trace_writer_free(writer);
  }
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  for (u32 r = 0; r < 4; r++)
    assert_true(r == 0 ? view.ranks[r].late_s > 1e-3 : view.ranks[r].late_s < 0.3e-3);
  live_view_release(&view);
  live_run_close(&run);
}

/* As with local SGD: rank 0 takes 4 ms longer for each step of 20 ms, and all meet in every tenth.
 */
static void who_is_late_at_rare_meetings_is_so_by_step(void **state) {
  (void)state;
  char place[64], path[96], why[256] = "";
  struct live_run run = {.directory = place};
  struct live_view view;
  snprintf(place, sizeof(place), "%s/rare", folder);
  assert_int_equal(mkdir(place, 0700), 0);
  for (u32 r = 0; r < 3; r++) {
    struct trace_writer *writer = new_rank(r, 3);
    write_comm(writer, ACROSS, 10, r, 3, TSCOPE_BACKEND_GLOO);
    for (u32 step = 0; step < 60; step++) {
      u64 met = (10 + 24 * 10 * (step / 10 + 1)) * MS, own = (r ? 20 : 24) * (step % 10 + 1) * MS;
      struct tscope_phase_record *phase =
          trace_add(writer, retained, AT(met - 240 * MS + own - MS), TSCOPE_REC_PHASE,
                    TSCOPE_PHASE_OPTIMIZER, sizeof(*phase));
      phase->dur = MS / 2;
      if (step % 10 == 9)
        call_of(writer, ACROSS, step / 10, met - 240 * MS + own, met);
    }
    snprintf(path, sizeof(path), "%s/%u.tscope", place, r);
    assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
    trace_writer_free(writer);
  }
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  assert_true(fabs(view.ranks[0].late_s - 4e-3) < 0.8e-3);
  assert_true(fabs(view.ranks[1].late_s) < 0.3e-3);
  live_view_release(&view);
  live_run_close(&run);
}

/* A true instant, as a rank's clock has it, on the axis. */
static i64 axis_time(const struct looking *looking, u32 rank, u64 instant) {
  return clock_to_axis(model_clock(looking->view.model, rank),
                       (i64)tracegen_clock(&looking->truth.ranks[rank], instant));
}

static const char *program = "/home/me/train.py";

/* Looks at a line, numbered so, of the program: each line is a stack of its own. */
static void write_line(struct trace_writer *writer, u32 line) {
  u32 file = trace_string(writer, program), function = trace_string(writer, "load");
  struct tscope_frame_record *frame =
      trace_add(writer, retained, AT(0), TSCOPE_REC_FRAME, 0, sizeof(*frame));
  frame->frame = frame->line = frame->first_line = line;
  frame->file = file;
  frame->function = function;
  struct tscope_stack_record *stack =
      trace_add(writer, retained, AT(0), TSCOPE_REC_STACK, 0, sizeof(*stack) + sizeof(u64));
  stack->stack = line;
  stack->frames = 1;
  *(u64 *)(stack + 1) = line;
}

static void write_look(struct trace_writer *writer, u64 at, u64 stands, u32 line) {
  struct tscope_line_sample_record *look =
      trace_add(writer, retained, AT(at), TSCOPE_REC_LINE_SAMPLE,
                TSCOPE_ACTIVITY_RUNNING | TSCOPE_SAMPLE_OF_THREAD, sizeof(*look));
  look->at = AT(at);
  look->stack = line;
  look->stands_us = (u32)(stands / 1000);
  look->tid = 1;
}

/* Rank 0 is 6 ms late in steps of 20 ms: it is at line 11. Once it was seen at line 10 by a look
 * that came late and stands for much time. Peers are at line 20 all the time, which one in ten of
 * their looks says for `long_look`. */
static const char *late_line(u32 steps, u32 first_at_11, u64 long_look, char *why,
                             size_t why_bytes) {
  static char text[128];
  char place[64], path[96];
  struct live_run run = {.directory = place};
  struct live_view view;
  static unsigned n;
  snprintf(place, sizeof(place), "%s/line%u", folder, n++);
  assert_int_equal(mkdir(place, 0700), 0);
  for (u32 r = 0; r < 3; r++) {
    struct trace_writer *writer = new_rank(r, 3);
    write_comm(writer, ACROSS, 10, r, 3, TSCOPE_BACKEND_GLOO);
    trace_info(writer, TSCOPE_INFO_DIRECTORY, "/home/me", NULL);
    for (u32 line = 10; line <= 20; line++)
      write_line(writer, line);
    for (u32 step = 0; step < steps; step++) {
      u64 begin = (10 + 20 * step) * MS;
      u64 stands = r && step % 10 == 0 ? long_look : 20 * MS;
      write_look(writer, begin, stands, r ? 20 : step < first_at_11 ? 10 : 11);
      call_of(writer, ACROSS, step, begin + (r ? 1 : 7) * MS, begin + 7 * MS);
    }
    if (r == 0)
      write_look(writer, (10 + 20 * steps) * MS, 500 * MS, 10);
    snprintf(path, sizeof(path), "%s/%u.tscope", place, r);
    assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
    trace_writer_free(writer);
  }
  assert_int_equal(live_run_poll(&run, why, why_bytes), 0);
  live_view_make(&view, &run);
  assert_true(view.ranks[0].late_s > 4e-3);
  snprintf(text, sizeof(text), "%s", view.ranks[0].late_at ? view.ranks[0].late_at : "");
  snprintf(why, why_bytes, "%s", view.ranks[0].late_why ? view.ranks[0].late_why : "");
  live_view_release(&view);
  live_run_close(&run);
  return text;
}

static void one_late_look_names_no_line(void **state) {
  (void)state;
  char why[256] = "";
  assert_string_equal(late_line(24, 0, 20 * MS, why, sizeof(why)), "");
  assert_non_null(strstr(why, "looks at the lines of this rank"));
  assert_string_equal(late_line(100, 0, 20 * MS, why, sizeof(why)), "train.py:11 (load)");
  assert_string_equal(late_line(100, 37, 20 * MS, why, sizeof(why)), ""); /* 1.25 s at each */
  assert_non_null(strstr(why, "two lines"));
  assert_string_equal(late_line(100, 0, 1000 * MS, why, sizeof(why)), "train.py:11 (load)");
}

/* As in the report: else the innermost line is named. */
static void a_line_of_a_package_is_named_where_none_is_the_users_own(void **state) {
  (void)state;
  char why[256] = "";
  program = "/usr/lib/python3/dist-packages/loader/read.py";
  assert_string_equal(late_line(100, 0, 20 * MS, why, sizeof(why)), "loader/read.py:11 (load)");
  program = "/home/me/train.py";
}

static void hosts_come_onto_one_axis(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct looking looking;
  options.ranks = 6;
  options.ranks_per_host = 1;
  options.skew = true;
  options.slow_rank = 3;
  options.slow_factor = 1.5;
  begin(&looking, options);
  assert_int_equal(looking.view.n_hosts, 6);
  u64 last = looking.truth.collective_end[options.steps * options.buckets - 1];
  for (u32 r = 0; r < options.ranks; r++) {
    const struct live_host *host = &looking.view.hosts[looking.view.ranks[r].host];
    i64 apart = axis_time(&looking, r, last) - axis_time(&looking, 0, last);
    assert_true(llabs(apart) < 30000);
    assert_true((double)llabs(apart) <= (host->error_s + looking.view.hosts[0].error_s) * 1e9 + 1);
    assert_true(host->error_s < 1e-3); /* a transfer and the wait for the others */
    assert_true(r == 3 ? looking.view.ranks[r].late_s > 0.2e-3
                       : fabs(looking.view.ranks[r].late_s) < 0.1e-3);
  }
  end(&looking);
}

/* Two machines of one name that were booted together: their clocks differ. */
static void hosts_of_one_name_are_told_apart(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct tscope_file_header header;
  struct looking looking;
  char why[256], name[sizeof(header.host)] = "";
  options.ranks = 4;
  options.ranks_per_host = 2;
  options.skew_hosts = true;
  begin(&looking, options);
  for (u32 r = 0; r < options.ranks; r++) {
    int fd = open(looking.view.ranks[r].process->trace.path, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
    memcpy(r ? header.host : name, r ? name : header.host, sizeof(name));
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    close(fd);
  }
  live_view_release(&looking.view);
  assert_int_equal(live_run_poll(&looking.run, why, sizeof(why)), 0);
  live_view_make(&looking.view, &looking.run);
  assert_int_equal(looking.view.n_hosts, 2);
  for (u32 r = 0; r < options.ranks; r++) {
    const struct live_host *host = &looking.view.hosts[looking.view.ranks[r].host];
    assert_string_equal(host->name, name);
    assert_int_equal(host->ranks, 2);
  }
  end(&looking);
}

/* Communicators that share no host with the first one do not help to align clocks with it. */
static void what_cannot_be_aligned_is_not_late(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct looking looking;
  options.ranks = 4;
  options.ranks_per_host = 1;
  options.islands = 2;
  options.skew = true;
  begin(&looking, options);
  u32 unknown = 0;
  for (u32 r = 0; r < 4; r++) {
    bool aligned = !isnan(looking.view.hosts[looking.view.ranks[r].host].error_s);
    unknown += !aligned;
    assert_int_equal(isnan(looking.view.ranks[r].late_s), !aligned);
  }
  assert_int_equal(unknown, 2);
  end(&looking);
}

static void what_is_not_known_is_not_zero(void **state) {
  (void)state;
  struct tracegen_options options = tracegen_defaults();
  struct looking looking;
  options.gpu_spans = false;
  options.steps = 1;
  options.buckets = 1;
  begin(&looking, options);
  const struct live_rank *rank = &looking.view.ranks[0];
  assert_true(isnan(rank->gpu) && isnan(rank->memory) && isnan(rank->step_s));
  assert_true(isnan(looking.view.rate));
  assert_null(rank->phase);
  assert_true(isnan(rank->waits_s));
  end(&looking);
}

/* Passes as PyTorch has them: each step loads for 2 ms, goes forward for 2 and backward for 3, and
 * is 10 ms long. Two optimizers take turns. */
static void save_passes(const char *path, u32 steps, bool backward, bool optimizers) {
  const u64 ms = 1000000, begin = 1000000 * ms;
  const struct {
    enum tscope_phase kind;
    const char *name;
    u64 from, to;
    bool there;
  } phases[] = {{TSCOPE_PHASE_DATA, "load", 0, 2, true},
                {TSCOPE_PHASE_FORWARD, "forward", 2, 4, true},
                {TSCOPE_PHASE_BACKWARD, "backward", 4, 7, backward},
                {TSCOPE_PHASE_OPTIMIZER, "first", 7, 8, optimizers},
                {TSCOPE_PHASE_OPTIMIZER, "second", 8, 9, optimizers}};
  struct tscope_file_header facts = {.tick_source = TSCOPE_TICK_MONOTONIC,
                                     .tick_hz = 1000000000,
                                     .pid = 1000,
                                     .world_size = 1,
                                     .start_ticks = begin,
                                     .start_monotonic_ns = begin,
                                     .start_realtime_ns = 1800000000000 * ms,
                                     .alive_ticks = begin + steps * 10 * ms,
                                     .host = "node0",
                                     .run = "run"};
  struct trace_writer *writer = trace_writer_new(&facts);
  for (u32 i = 0; i < steps; i++)
    for (u32 k = 0; k < LENGTH_OF(phases); k++) {
      if (!phases[k].there)
        continue;
      u32 name = trace_string(writer, phases[k].name);
      struct tscope_phase_record *phase =
          trace_add(writer, retained, begin + (i * 10 + phases[k].from) * ms, TSCOPE_REC_PHASE,
                    (u16)phases[k].kind, sizeof(*phase));
      phase->dur = (phases[k].to - phases[k].from) * ms;
      phase->name = name;
    }
  assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
  trace_writer_free(writer);
}

/* What was found stays so at the next look, which knows fewer of the steps. */
static void check_passes(u32 steps, bool backward, bool optimizers, const char *method,
                         u32 counted) {
  static unsigned n;
  char place[64], path[96], why[256];
  snprintf(place, sizeof(place), "%s/passes%u", folder, n++);
  snprintf(path, sizeof(path), "%s/0.tscope", place);
  assert_int_equal(mkdir(place, 0700), 0);
  save_passes(path, steps, backward, optimizers);
  struct live_run run = {.directory = place};
  for (u32 looks = 0; looks < 3; looks++) {
    struct live_view view;
    assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
    live_view_make(&view, &run);
    assert_non_null(view.step_method);
    assert_string_equal(view.step_method, method);
    assert_true(fabs(view.step_s - 0.01) < 1e-6);
    assert_true(view.ranks[0].steps.counted);
    assert_int_equal(view.ranks[0].steps.count, counted);
    live_view_release(&view);
  }
  live_run_close(&run);
}

static void steps_are_found_as_in_the_report(void **state) {
  (void)state;
  check_passes(20, true, true, "optimizer phases", 20);
  check_passes(1000, true, true, "optimizer phases", 1000);
  check_passes(20, true, false, "backward passes", 20);
  check_passes(1000, true, false, "backward passes", 1000);
  check_passes(20, false, false, "forward passes", 20);
}

SCRATCH_OF_GROUP(folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_as_long_as_they_were),
      cmocka_unit_test(uneven_steps_have_the_rate_of_all),
      cmocka_unit_test(a_rank_that_runs_stands_for_the_job),
      cmocka_unit_test(steps_are_found_as_in_the_report),
      cmocka_unit_test(the_slow_rank_is_late),
      cmocka_unit_test(who_is_late_at_rare_meetings_is_so_by_step),
      cmocka_unit_test(who_waited_in_another_communicator_is_not_late),
      cmocka_unit_test(one_late_look_names_no_line),
      cmocka_unit_test(a_line_of_a_package_is_named_where_none_is_the_users_own),
      cmocka_unit_test(hosts_come_onto_one_axis),
      cmocka_unit_test(hosts_of_one_name_are_told_apart),
      cmocka_unit_test(what_cannot_be_aligned_is_not_late),
      cmocka_unit_test(what_is_not_known_is_not_zero),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
