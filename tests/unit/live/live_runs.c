/* SPDX-License-Identifier: MIT
 *
 * Which runs and processes a view of a running job shows, and how they stand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
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

static char folder[] = "/tmp/tscope-runs-XXXXXX";

/* The state of a process whose last sign of life was `silent_s` seconds ago. */
static enum live_state state_of(const char *host, u32 pid, double silent_s, double *behind_s) {
  static unsigned n;
  struct timespec real, monotonic;
  char place[64], path[96], why[256];
  struct live_view view;
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  u64 mono_ns = (u64)monotonic.tv_sec * 1000000000u + (u64)monotonic.tv_nsec;
  struct tscope_file_header facts = {.tick_source = TSCOPE_TICK_MONOTONIC,
                                     .tick_hz = 1000000000,
                                     .pid = pid,
                                     .world_size = 1,
                                     .start_ticks = mono_ns,
                                     .start_monotonic_ns = mono_ns,
                                     .start_realtime_ns =
                                         (u64)real.tv_sec * 1000000000u + (u64)real.tv_nsec,
                                     .alive_ticks = mono_ns - (u64)(silent_s * 1e9),
                                     .run = "run"};
  snprintf(facts.host, sizeof(facts.host), "%s", host);
  struct trace_writer *writer = trace_writer_new(&facts);
  snprintf(place, sizeof(place), "%s/state%u", folder, n++);
  snprintf(path, sizeof(path), "%s/0.tscope", place);
  assert_int_equal(mkdir(place, 0700), 0);
  trace_string(writer, "x");
  assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
  trace_writer_free(writer);
  struct live_run run = {.directory = place};
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  enum live_state state = view.ranks[0].state;
  *behind_s = view.hosts[0].behind_s;
  /* The report's questions are asked as of a job that runs: silence of some seconds counts. */
  bool lives = state == LIVE_RUNNING || state == LIVE_SILENT || state == LIVE_STOPPED;
  assert_int_equal(view.model->ranks[0].running, lives && strcmp(host, "elsewhere") != 0);
  assert_int_equal(view.model->ranks[0].may_run, lives && strcmp(host, "elsewhere") == 0);
  live_view_release(&view);
  live_run_close(&run);
  return state;
}

/* A pid that no process has: that of a child that ended and was reaped. */
static u32 no_process(void) {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  waitpid(child, NULL, 0);
  return (u32)child;
}

static void reasons_of_silence_are_distinguished(void **state) {
  char here[64] = "";
  double behind;
  (void)state;
  gethostname(here, sizeof(here) - 1);
  assert_int_equal(state_of(here, (u32)getpid(), 0.1, &behind), LIVE_RUNNING);
  assert_int_equal(state_of(here, (u32)getpid(), 10, &behind), LIVE_SILENT);
  assert_int_equal(state_of(here, no_process(), 0.1, &behind), LIVE_RUNNING);
  assert_int_equal(state_of(here, no_process(), 10, &behind), LIVE_GONE);
  pid_t stopped = fork();
  if (stopped == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(stopped, NULL, WUNTRACED);
  assert_int_equal(state_of(here, (u32)stopped, 10, &behind), LIVE_STOPPED);
  kill(stopped, SIGKILL);
  waitpid(stopped, NULL, 0);
  /* Files from another host may be old, and the state of its processes is unknown. */
  assert_int_equal(state_of("elsewhere", no_process(), 20, &behind), LIVE_RUNNING);
  assert_true(behind > 19 && behind < 30);
  assert_int_equal(state_of("elsewhere", no_process(), 100, &behind), LIVE_SILENT);
}

static void save_process(const char *place, const char *run, u32 number, u32 rank, u32 world,
                         u64 start_s) {
  char path[96];
  struct tscope_file_header facts = {.tick_source = TSCOPE_TICK_MONOTONIC,
                                     .tick_hz = 1000000000,
                                     .pid = 1000 + number,
                                     .rank = rank,
                                     .world_size = world,
                                     .start_ticks = start_s * 1000000000u,
                                     .start_monotonic_ns = start_s * 1000000000u,
                                     .start_realtime_ns = (1800000000u + start_s) * 1000000000u,
                                     .alive_ticks = (start_s + 5) * 1000000000u,
                                     .host = "node0"};
  snprintf(facts.run, sizeof(facts.run), "%s", run);
  struct trace_writer *writer = trace_writer_new(&facts);
  snprintf(path, sizeof(path), "%s/%u.tscope", place, number);
  trace_string(writer, "x");
  assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
  trace_writer_free(writer);
}

/* As in the report: a name that a run has is no beginning of another's. */
static void a_run_is_shown_by_its_name(void **state) {
  (void)state;
  static const struct {
    const char *wanted, *shown, *why;
  } runs[] = {{"job", "job", ""},
              {"job-", "job-2", ""},
              {NULL, "other-2", ""},
              {"other", NULL, "several runs start"},
              {"x", NULL, "no run is called"},
              {"bad", NULL, "/names/bad/0.tscope "}};
  char place[64], bad[96], why[256];
  snprintf(place, sizeof(place), "%s/names", folder);
  assert_int_equal(mkdir(place, 0700), 0);
  snprintf(bad, sizeof(bad), "%s/bad", place);
  assert_int_equal(mkdir(bad, 0700), 0);
  snprintf(bad, sizeof(bad), "%s/bad/0.tscope", place);
  assert_int_equal(close(open(bad, O_CREAT | O_WRONLY, 0600)), 0);
  save_process(place, "job", 0, 0, 1, 1000);
  save_process(place, "job-2", 1, 0, 1, 2000);
  save_process(place, "other-1", 2, 0, 1, 3000);
  save_process(place, "other-2", 3, 0, 1, 4000);
  for (u32 i = 0; i < LENGTH_OF(runs); i++) {
    struct live_run run = {.directory = place, .wanted = runs[i].wanted};
    assert_int_equal(live_run_poll(&run, why, sizeof(why)), runs[i].shown ? 0 : -ENOENT);
    if (runs[i].shown)
      assert_string_equal(run.name, runs[i].shown);
    else
      assert_non_null(strstr(why, runs[i].why));
    live_run_close(&run);
  }
}

/* Two processes, of which `known` know their rank, and the last called a collective if `calls`. */
static void check_unknown_ranks(u32 known, bool calls) {
  static unsigned n;
  char place[64], path[96], why[256];
  snprintf(place, sizeof(place), "%s/unknown%u", folder, n++);
  assert_int_equal(mkdir(place, 0700), 0);
  for (u32 i = 0; i < 2; i++) {
    struct tscope_file_header facts = {.tick_source = TSCOPE_TICK_MONOTONIC,
                                       .tick_hz = 1000000000,
                                       .pid = 1000 + i,
                                       .rank = i < known ? i : TSCOPE_UNKNOWN_RANK,
                                       .start_ticks = 1000000000,
                                       .start_monotonic_ns = 1000000000,
                                       .start_realtime_ns = 1800000000000000000u + i,
                                       .host = "node0",
                                       .run = "run"};
    struct trace_writer *writer = trace_writer_new(&facts);
    write_comm(writer, 1, 7, TSCOPE_UNKNOWN_RANK, 2, TSCOPE_BACKEND_GLOO);
    if (calls)
      write_call(writer, 1000, TSCOPE_OP_ALLREDUCE, 1, 0);
    snprintf(path, sizeof(path), "%s/%u.tscope", place, i);
    assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
    trace_writer_free(writer);
  }
  struct live_run run = {.directory = place};
  struct live_view view;
  struct model *model = load(place, NULL);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  assert_int_equal(model->n_ranks, known && !calls ? 1 : 2);
  assert_int_equal(view.n_ranks, model->n_ranks);
  for (u32 r = 0; r < view.n_ranks; r++) {
    assert_int_equal(view.ranks[r].rank, model->ranks[r].rank);
    assert_int_equal(view.ranks[r].process->trace.file.header.pid, model->ranks[r].pid);
  }
  live_view_release(&view);
  live_run_close(&run);
  model_free(model);
}

static void processes_of_unknown_rank_are_numbered_as_in_the_report(void **state) {
  (void)state;
  check_unknown_ranks(0, false);
  check_unknown_ranks(0, true);
  check_unknown_ranks(1, false);
  check_unknown_ranks(1, true);
}

/* As in the report: a copy of a run's folder is a run of its own, not another start of the job. */
static void a_copy_is_another_run(void **state) {
  (void)state;
  static const char *const folders[] = {"copies", "copies/run.bak", "copies/run"};
  char place[64], why[256];
  for (u32 i = 0; i < LENGTH_OF(folders); i++) {
    snprintf(place, sizeof(place), "%s/%s", folder, folders[i]);
    assert_int_equal(mkdir(place, 0700), 0);
    for (u32 rank = 0; rank < 2 && i > 0; rank++)
      save_process(place, "run", rank, rank, 2, 1000);
  }
  snprintf(place, sizeof(place), "%s/copies", folder);
  struct live_run run = {.directory = place};
  struct live_view view;
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  assert_string_equal(run.name, "run");
  assert_int_equal(run.attempt, 1);
  assert_int_equal(view.n_ranks, 2);
  assert_int_equal(view.left_out, 0);
  live_view_release(&view);
  live_run_close(&run);
}

/* Three ranks; then the job was started again with two. */
static void the_start_before_is_counted(void **state) {
  (void)state;
  char place[64], why[256];
  struct live_view view;
  snprintf(place, sizeof(place), "%s/starts", folder);
  assert_int_equal(mkdir(place, 0700), 0);
  struct live_run run = {.directory = place};
  for (u32 rank = 0; rank < 3; rank++)
    save_process(place, "run", rank, rank, 3, 1000);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  assert_int_equal(run.attempt, 1);
  assert_int_equal(run.ranks_before, 0);
  for (u32 rank = 0; rank < 2; rank++)
    save_process(place, "run", 3 + rank, rank, 2, 2000);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  live_view_make(&view, &run);
  assert_int_equal(run.attempt, 2);
  assert_int_equal(run.ranks_before, 3);
  assert_int_equal(view.n_ranks, 2);
  assert_int_equal(view.left_out, 0);
  live_view_release(&view);
  live_run_close(&run);
}

SCRATCH_OF_GROUP(folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reasons_of_silence_are_distinguished),
      cmocka_unit_test(a_run_is_shown_by_its_name),
      cmocka_unit_test(processes_of_unknown_rank_are_numbered_as_in_the_report),
      cmocka_unit_test(a_copy_is_another_run),
      cmocka_unit_test(the_start_before_is_counted),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
