/* SPDX-License-Identifier: MIT
 *
 * Starts of one job under one name, on hosts whose clocks count from different origins.
 */
#include "import/tscope/files/process_state.h"
#include "import/tscope/ranks/processes.h"
#include "live/live_run.h"
#include "model_support.h"

#define SECOND 1000000000ll

/* One process, in true seconds; its host's clocks are off by what hosts[] says. */
struct one {
  u32 attempt; /* the true one, from 1 on; also its pid's hundreds */
  u32 host, rank, world_size;
  double start, end;
  const char *port, *restarts; /* NULL: its environment does not say */
  const char *run;             /* NULL: one name for all */
  u32 calls;                   /* collectives that it took part in, until it ended */
};

struct host {
  i64 monotonic_s, wall_s;
};

/* A call returns at once; when it ran, another thread records. */
static void write_gloo_run(struct trace_writer *writer, u64 at, u32 seq) {
  struct tscope_collective_run_record *record =
      trace_add(writer, retained, AT(at), TSCOPE_REC_COLLECTIVE_RUN, 1, sizeof(*record));
  record->dur = 1000000;
  record->comm = 1;
  record->seq = seq;
}

/* In each attempt they follow one another at other distances. They run within a millisecond on all
 * ranks, some of which call them tenths of a second before. `started` is by the clock of its host;
 * that of host 2 jumps. */
static void write_calls(struct trace_writer *writer, const struct one *one, u64 started) {
  double time = one->end - 0.5; /* the last is half a second before the end of all */
  for (u32 seq = one->calls; seq > 0; seq--) {
    u64 at = started + (u64)((time - one->start) * SECOND) + one->rank * 100000;
    at += one->host == 2 && 2 * seq > one->calls ? 5 * SECOND : 0;
    write_call(writer, at - one->host * (seq % 3) * 100000000, TSCOPE_OP_ALLREDUCE, 1, seq);
    write_gloo_run(writer, at + 2000, seq);
    time -= 0.3 + (one->attempt - 1) * (seq % 3) * 0.1;
  }
}

static void write_process(struct fixture *fixture, const struct one *one, const struct host *host) {
  struct trace_writer *writer = new_rank(one->rank, one->world_size);
  struct tscope_file_header *header = trace_writer_header(writer);
  char clock[64];
  u64 started = (u64)(one->start * SECOND) + (u64)(host->monotonic_s * SECOND);
  header->pid = 100 * one->attempt + one->rank;
  header->start_ticks = header->start_monotonic_ns = started;
  header->start_realtime_ns =
      1700000000000000000ull + (u64)(one->start * SECOND) + (u64)(host->wall_s * SECOND);
  header->closed_realtime_ns = 0;
  header->alive_ticks = started + (u64)((one->end - one->start) * SECOND);
  snprintf(header->host, sizeof(header->host), "node%u", one->host);
  snprintf(clock, sizeof(clock), "boot-%u 0 0", one->host);
  trace_info(writer, TSCOPE_INFO_CLOCK, clock, NULL);
  if (one->run)
    snprintf(header->run, sizeof(header->run), "%s", one->run);
  if (one->port)
    trace_info(writer, TSCOPE_INFO_ENVIRONMENT, one->port, "MASTER_PORT");
  if (one->restarts)
    trace_info(writer, TSCOPE_INFO_ENVIRONMENT, one->restarts, "TORCHELASTIC_RESTART_COUNT");
  write_comm(writer, 1, 5, one->rank, one->world_size, TSCOPE_BACKEND_GLOO);
  if (one->calls == 0)
    write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
  write_calls(writer, one, started - (u64)AT(0));
  save_rank(fixture, writer);
}

static u32 write_processes(void **state, const struct one *all, u32 n, const struct host *hosts) {
  u32 attempts = 0;
  for (u32 i = 0; i < n; i++) {
    write_process(*state, &all[i], &hosts[all[i].host]);
    attempts = MAX(all[i].attempt, attempts);
  }
  return attempts;
}

/* In the report of that run every process is in its own attempt, and their number and order are
 * right. */
static void check_report(void **state, const struct one *all, u32 n, u32 attempts,
                         const char *run) {
  for (u32 wanted = 1; wanted <= attempts; wanted++) {
    struct model_options options = {.run = run, .attempt = wanted == attempts ? 0 : wanted};
    struct model *model = load(((struct fixture *)*state)->directory, &options);
    u32 ranks = 0;
    for (u32 i = 0; i < n; i++)
      ranks += all[i].attempt == wanted;
    assert_int_equal(model->n_attempts, attempts);
    assert_int_equal(model->attempt, wanted);
    assert_int_equal(model->n_ranks, ranks);
    for (u32 r = 0; r < ranks; r++)
      assert_int_equal(model->ranks[r].pid / 100, wanted);
    model_free(model);
  }
}

static void check(void **state, const struct one *all, u32 n, const struct host *hosts) {
  check_report(state, all, n, write_processes(state, all, n, hosts), NULL);
}

/* The list of runs has one job of all, whichever run it is asked about. */
static void check_list(void **state, u32 n, u32 attempts, u32 n_runs) {
  const char *path = ((struct fixture *)*state)->directory;
  char why[256];
  struct arena arena = {0};
  struct trace_runs runs;
  assert_int_equal(trace_runs_find(&path, 1, 1, &arena, &runs, why, sizeof(why)), 0);
  assert_int_equal(runs.n_runs, n_runs);
  for (u32 i = 0; i < n_runs; i++) {
    struct trace_job job;
    trace_job_find(&job, &runs, i, &arena);
    assert_int_equal(job.attempts, attempts);
    assert_int_equal(job.files.n_entries, n);
    for (u32 k = 0; k < n; k++)
      assert_int_equal(job.attempt_of[k], job.files.entries[k].header.pid / 100);
    for (u32 k = 0; k < n_runs; k++)
      assert_int_equal(job.with[k], k != i);
  }
  arena_release(&arena);
}

/* And what top shows of that run is the last attempt. */
static void check_top(void **state, const struct one *all, u32 n, u32 attempts, const char *run) {
  struct live_run live = {.directory = ((struct fixture *)*state)->directory, .wanted = run};
  char why[256];
  u32 ranks = 0, before = 0;
  for (u32 i = 0; i < 2; i++)
    assert_int_equal(live_run_poll(&live, why, sizeof(why)), 0);
  for (u32 i = 0; i < n; i++) {
    ranks += all[i].attempt == attempts;
    before += all[i].attempt + 1 == attempts;
  }
  assert_int_equal(live.attempt, attempts);
  assert_int_equal(live.ranks_before, before);
  for (u32 i = 0; i < live.entries.n; i++) {
    const struct live_entry *entry = live.entries.at[i];
    assert_true(entry->of_run);
    assert_int_equal(entry->attempt, entry->process->trace.file.header.pid / 100);
    ranks -= !entry->left_out;
  }
  assert_int_equal(ranks, 0);
  live_run_close(&live);
}

static void check_runs(void **state, const struct one *all, u32 n, const char *const *runs,
                       u32 n_runs) {
  u32 attempts = write_processes(state, all, n, (struct host[]){{0, 0}, {7200, 0}});
  for (u32 i = 0; i < n_runs; i++) {
    check_report(state, all, n, attempts, runs[i]);
    check_top(state, all, n, attempts, runs[i]);
  }
  check_list(state, n, attempts, n_runs);
}

static const struct host together[] = {{0, 0}, {7200, 0}, {-3, 0}};
static const struct host half_a_minute[] = {{0, 0}, {7200, 30}, {-3, -30}};
static const struct host an_hour[] = {{0, 0}, {7200, 3600}, {-3, -3600}};
/* A rank fails; all are started again, with the same port. Only its host counts that. */
static void test_elastic_restart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 6, 5, 20, "29400", "0"},    {1, 0, 1, 6, 5.1, 20, "29400", "0"},
      {1, 1, 2, 6, 5.3, 20, "29400", "0"},  {1, 1, 3, 6, 5, 18, "29400", "0"},
      {1, 2, 4, 6, 5.2, 20, "29400", "0"},  {1, 2, 5, 6, 5, 20, "29400", "0"},
      {2, 0, 0, 6, 24, 50, "29400", "0"},   {2, 0, 1, 6, 24.5, 50, "29400", "0"},
      {2, 1, 2, 6, 24, 50, "29400", "1"},   {2, 1, 3, 6, 24.1, 50, "29400", "1"},
      {2, 2, 4, 6, 24.2, 50, "29400", "0"}, {2, 2, 5, 6, 24.7, 50, "29400", "0"}};
  check(state, all, LENGTH_OF(all), together);
}

static void test_wall_clocks_apart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 3, 5, 20, "29400", NULL},  {1, 1, 1, 3, 5, 20, "29400", NULL},
      {1, 2, 2, 3, 5, 20, "29400", NULL},  {2, 0, 0, 3, 22, 50, "29400", NULL},
      {2, 1, 1, 3, 23, 50, "29400", NULL}, {2, 2, 2, 3, 21, 50, "29400", NULL},
      {3, 0, 0, 3, 52, 55, "29400", NULL}, {3, 1, 1, 3, 52, 55, "29400", NULL},
      {3, 2, 2, 3, 52, 55, "29400", NULL}};
  check(state, all, LENGTH_OF(all), half_a_minute);
}

static void test_wall_clocks_an_hour_apart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 3, 5, 20, "29400", NULL},  {1, 1, 1, 3, 5, 20, "29400", NULL},
      {1, 2, 2, 3, 5, 20, "29400", NULL},  {2, 0, 0, 3, 22, 50, "29400", NULL},
      {2, 1, 1, 3, 23, 50, "29400", NULL}, {2, 2, 2, 3, 21, 50, "29400", NULL}};
  check(state, all, LENGTH_OF(all), an_hour);
}

/* A host is lost, and the others go on with fewer ranks. Its wall clock is ahead: its traces look
 * as if they were the newest. */
static void test_fewer_hosts(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 6, 5, 20, "29400", NULL},  {1, 0, 1, 6, 5, 20, "29400", NULL},
      {1, 1, 2, 6, 5, 18, "29400", NULL},  {1, 1, 3, 6, 5, 18, "29400", NULL},
      {1, 2, 4, 6, 5, 20, "29400", NULL},  {1, 2, 5, 6, 5, 20, "29400", NULL},
      {2, 0, 2, 4, 30, 40, "29400", NULL}, {2, 0, 3, 4, 30, 40, "29400", NULL},
      {2, 2, 0, 4, 30, 40, "29400", NULL}, {2, 2, 1, 4, 30, 40, "29400", NULL}};
  check(state, all, LENGTH_OF(all), half_a_minute);
}

/* Of the first start only some ranks left a trace. The second is complete. */
static void test_traces_of_some_ranks(void **state) {
  static const struct one all[] = {
      {1, 0, 1, 4, 5, 7, "29400", "0"},   {1, 1, 2, 4, 5, 7, "29400", "0"},
      {2, 0, 0, 4, 10, 30, "29400", "1"}, {2, 0, 1, 4, 10.5, 30, "29400", "1"},
      {2, 1, 3, 4, 10, 30, "29400", "1"}, {2, 1, 2, 4, 11, 30, "29400", "1"}};
  check(state, all, LENGTH_OF(all), half_a_minute);
}

/* A rank that ends before another has begun belongs to the same start, if the launcher says so. */
static void test_one_start_whose_ranks_do_not_live_together(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 6, "29400", "0"},
                                   {1, 0, 1, 4, 7, 9, "29400", "0"},
                                   {1, 1, 2, 4, 5, 8, "29400", "0"},
                                   {1, 1, 3, 4, 9, 9.5, "29400", "0"}};
  check(state, all, LENGTH_OF(all), together);
}

/* All are killed before the first has shown that it lives. */
static void test_killed_when_the_last_has_begun(void **state) {
  static const struct one all[] = {{1, 0, 0, 2, 5, 5, NULL, NULL},
                                   {1, 0, 1, 2, 5.006, 5.006, NULL, NULL}};
  check(state, all, LENGTH_OF(all), together);
}

/* Without anything from a launcher: the same script, three times in a row. */
static void test_started_again_by_hand(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 2, 5, 20, NULL, NULL},  {1, 0, 1, 2, 5, 20, NULL, NULL},
      {2, 0, 0, 2, 21, 30, NULL, NULL}, {2, 0, 1, 2, 22, 30, NULL, NULL},
      {3, 0, 1, 2, 31, 40, NULL, NULL}, {3, 0, 0, 2, 32, 40, NULL, NULL}};
  check(state, all, LENGTH_OF(all), together);
}

/* Nothing from a launcher, and no clock that could tell: these are the ranks that the others lack.
 */
static void test_wall_clocks_an_hour_apart_and_no_port(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 20, NULL, NULL},
                                   {1, 0, 1, 4, 5, 20, NULL, NULL},
                                   {1, 1, 2, 4, 5, 20, NULL, NULL},
                                   {1, 1, 3, 4, 5, 20, NULL, NULL}};
  check(state, all, LENGTH_OF(all), an_hour);
}

/* Of the second start one host left no trace. Its ranks of the first did not end the collectives of
 * the second: they are not in that, though wall clocks allow it. */
static void test_half_of_a_start(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 4, 5, 20, "29400", NULL, NULL, 20},  {1, 0, 1, 4, 5, 20, "29400", NULL, NULL, 20},
      {1, 1, 2, 4, 5, 20, "29400", NULL, NULL, 20},  {1, 1, 3, 4, 5, 20, "29400", NULL, NULL, 20},
      {2, 0, 0, 4, 30, 50, "29400", NULL, NULL, 30}, {2, 0, 1, 4, 30, 50, "29400", NULL, NULL, 30}};
  check(state, all, LENGTH_OF(all), together);
  check_top(state, all, LENGTH_OF(all), 2, NULL);
}

/* Halves of two starts are not a whole one. */
static void test_halves_of_two_starts(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 20, NULL, NULL, NULL, 20},
                                   {1, 0, 1, 4, 5, 20, NULL, NULL, NULL, 20},
                                   {2, 1, 2, 4, 30, 45, NULL, NULL, NULL, 20},
                                   {2, 1, 3, 4, 30, 45, NULL, NULL, NULL, 20}};
  check(state, all, LENGTH_OF(all), together);
  check_top(state, all, LENGTH_OF(all), 2, NULL);
}

/* A machine that is moved stands still for seconds: its clock says that these were other calls. */
static void test_clock_that_jumps(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 20, NULL, NULL, NULL, 20},
                                   {1, 0, 1, 4, 5, 20, NULL, NULL, NULL, 20},
                                   {1, 2, 2, 4, 5, 25, NULL, NULL, NULL, 20},
                                   {1, 2, 3, 4, 5, 25, NULL, NULL, NULL, 20}};
  check(state, all, LENGTH_OF(all), together);
}

/* The first start left nothing on a host whose clock is half a minute ahead: by wall clocks, that
 * of its second is as close to the first of the others. */
static void test_collectives_tell_which_start(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 4, 5, 20, NULL, NULL, NULL, 20},  {1, 0, 1, 4, 5, 20, NULL, NULL, NULL, 20},
      {1, 1, 2, 4, 5, 20, NULL, NULL, NULL, 19},  {1, 1, 3, 4, 5, 20, NULL, NULL, NULL, 20},
      {2, 0, 0, 4, 36, 50, NULL, NULL, NULL, 20}, {2, 0, 1, 4, 36, 50, NULL, NULL, NULL, 20}};
  check(state, all, LENGTH_OF(all), half_a_minute);
  check_top(state, all, LENGTH_OF(all), 2, NULL);
}

/* Hosts whose launchers know nothing of each other: report, list and top put their runs together.
 */
static void test_each_host_names_its_run(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 4, 5, 18, "29400", "0", "a"},  {1, 0, 1, 4, 5, 18, "29400", "0", "a"},
      {1, 1, 2, 4, 6, 18, "29400", "0", "b"},  {1, 1, 3, 4, 5, 17, "29400", "0", "b"},
      {2, 0, 0, 4, 30, 40, "29400", "0", "a"}, {2, 0, 1, 4, 30, 40, "29400", "0", "a"},
      {2, 1, 2, 4, 31, 40, "29400", "1", "b"}, {2, 1, 3, 4, 31, 40, "29400", "1", "b"}};
  check_runs(state, all, LENGTH_OF(all), (const char *[]){"a", "b"}, 2);
}

/* The launcher of one host alone is started again: its second run is the job's second start, too.
 */
static void test_one_host_is_started_again(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 4, 5, 18, "29400", "0", "a"},  {1, 0, 1, 4, 5, 18, "29400", "0", "a"},
      {1, 1, 2, 4, 6, 18, "29400", "0", "b"},  {1, 1, 3, 4, 5, 17, "29400", "0", "b"},
      {2, 0, 0, 4, 30, 40, "29400", "1", "a"}, {2, 0, 1, 4, 30, 40, "29400", "1", "a"},
      {2, 1, 2, 4, 31, 40, "29400", "0", "c"}, {2, 1, 3, 4, 31, 40, "29400", "0", "c"}};
  check_runs(state, all, LENGTH_OF(all), (const char *[]){"a", "b", "c"}, 3);
}

/* Nothing says how many ranks there are. Ranks of one run are all there are, unless another run was
 * there at the same time. */
static void test_headers_that_do_not_say_how_many_ranks(void **state) {
  const char *path = ((struct fixture *)*state)->directory;
  for (u32 n_runs = 1; n_runs <= 2; n_runs++) {
    struct trace_writer *writer = new_rank(n_runs, 0);
    struct arena arena = {0};
    struct trace_runs runs;
    struct processes processes;
    char why[256];
    snprintf(trace_writer_header(writer)->run, 8, "run%u", n_runs);
    save_rank(*state, writer);
    assert_int_equal(trace_runs_find(&path, 1, 1, &arena, &runs, why, sizeof(why)), 0);
    processes_list(&processes, &runs.runs[0], &arena);
    assert_int_equal(trace_ranks_are_unclear(&runs, &runs.runs[0], &processes), n_runs == 2);
    processes_release(&processes);
    arena_release(&arena);
  }
}

/* Neither the report of each run nor top takes ranks of the other. */
static void check_two_jobs(void **state, const struct one *all, u32 n) {
  const char *path = ((struct fixture *)*state)->directory;
  write_processes(state, all, n, together);
  for (u32 i = 0; i < 2; i++) {
    struct model_options options = {.run = i ? "b" : "a"};
    struct live_run live = {.directory = path, .wanted = options.run};
    struct model *model = load(path, &options);
    char why[256];
    assert_int_equal(live_run_poll(&live, why, sizeof(why)), 0);
    assert_int_equal(model->n_ranks, 2);
    assert_int_equal(model->n_attempts, 1);
    for (u32 k = 0; k < live.entries.n; k++)
      assert_int_equal(live.entries.at[k]->of_run,
                       live.entries.at[k]->process->trace.file.header.pid / 100 == i + 1);
    model_free(model);
    live_run_close(&live);
  }
}

/* Communicators of gloo are called alike in every job. */
static void test_two_jobs_on_two_ports(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 18, "29400", "0", "a"},
                                   {1, 0, 1, 4, 5, 18, "29400", "0", "a"},
                                   {2, 1, 2, 4, 6, 18, "29500", "0", "b"},
                                   {2, 1, 3, 4, 5, 17, "29500", "0", "b"}};
  check_two_jobs(state, all, LENGTH_OF(all));
}

/* Ports can be, too, on other hosts. */
static void test_two_jobs_on_one_port(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 18, "29500", "0", "a", 20},
                                   {1, 0, 1, 4, 5, 18, "29500", "0", "a", 20},
                                   {2, 1, 2, 4, 5, 18, "29500", "0", "b", 20},
                                   {2, 1, 3, 4, 5, 18, "29500", "0", "b", 20}};
  check_two_jobs(state, all, LENGTH_OF(all));
}

/* Of two hosts called alike each was booted at its own time; a clock that is set by a second is
 * none. */
static void test_hosts_of_one_name(void **state) {
  (void)state;
  struct tscope_file_header a = {.host = "node",
                                 .start_monotonic_ns = 5 * SECOND,
                                 .start_realtime_ns = 1700000000ull * SECOND},
                            b = a, c = a, d = a;
  b.start_monotonic_ns += 7200 * SECOND;
  c.start_realtime_ns += SECOND;
  d.host[0] = 'm';
  assert_false(processes_share_host(&a, &b));
  assert_true(processes_share_host(&a, &c));
  assert_false(processes_share_host(&a, &d));
}

/* Of a damaged file, whose times are as far apart as can be: their difference wraps around to 1. */
static void test_boots_as_far_apart_as_can_be(void **state) {
  (void)state;
  struct tscope_file_header a = {.host = "node", .start_realtime_ns = INT64_MAX}, b = a;
  b.start_realtime_ns = 1ull << 63;
  assert_false(processes_share_host(&a, &b));
  assert_false(processes_share_host(&b, &a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(test_elastic_restart),
      WITH_FOLDER(test_wall_clocks_apart),
      WITH_FOLDER(test_wall_clocks_an_hour_apart),
      WITH_FOLDER(test_fewer_hosts),
      WITH_FOLDER(test_traces_of_some_ranks),
      WITH_FOLDER(test_one_start_whose_ranks_do_not_live_together),
      WITH_FOLDER(test_killed_when_the_last_has_begun),
      WITH_FOLDER(test_started_again_by_hand),
      WITH_FOLDER(test_wall_clocks_an_hour_apart_and_no_port),
      WITH_FOLDER(test_half_of_a_start),
      WITH_FOLDER(test_halves_of_two_starts),
      WITH_FOLDER(test_clock_that_jumps),
      WITH_FOLDER(test_collectives_tell_which_start),
      WITH_FOLDER(test_each_host_names_its_run),
      WITH_FOLDER(test_one_host_is_started_again),
      WITH_FOLDER(test_headers_that_do_not_say_how_many_ranks),
      WITH_FOLDER(test_two_jobs_on_two_ports),
      WITH_FOLDER(test_two_jobs_on_one_port),
      cmocka_unit_test(test_hosts_of_one_name),
      cmocka_unit_test(test_boots_as_far_apart_as_can_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
