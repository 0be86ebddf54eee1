/* SPDX-License-Identifier: MIT
 *
 * Starts of one job under one name, on hosts whose clocks count from different origins.
 */
#include "model_support.h"

#define SECOND 1000000000ll

/* One process, in true seconds; its host's clocks are off by what hosts[] says. */
struct one {
  u32 attempt; /* the true one, from 1 on; also its pid's hundreds */
  u32 host, rank, world_size;
  double start, end;
  const char *port, *restarts; /* NULL: its environment does not say */
};

struct host {
  i64 monotonic_s, wall_s;
};

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
  if (one->port)
    trace_info(writer, TSCOPE_INFO_ENVIRONMENT, one->port, "MASTER_PORT");
  if (one->restarts)
    trace_info(writer, TSCOPE_INFO_ENVIRONMENT, one->restarts, "TORCHELASTIC_RESTART_COUNT");
  write_comm(writer, 1, 5, one->rank, one->world_size, TSCOPE_BACKEND_GLOO);
  write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
  save_rank(fixture, writer);
}

/* Every process is in its own attempt, and their number and order are right. */
static void check(void **state, const struct one *all, u32 n, const struct host *hosts) {
  u32 attempts = 0;
  for (u32 i = 0; i < n; i++) {
    write_process(*state, &all[i], &hosts[all[i].host]);
    attempts = all[i].attempt > attempts ? all[i].attempt : attempts;
  }
  for (u32 wanted = 1; wanted <= attempts; wanted++) {
    struct model_options options = {.attempt = wanted == attempts ? 0 : wanted};
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

static const struct host together[] = {{0, 0}, {7200, 0}, {-3, 0}};
static const struct host half_a_minute[] = {{0, 0}, {7200, 30}, {-3, -30}};
static const struct host an_hour[] = {{0, 0}, {7200, 3600}, {-3, -3600}};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* A rank fails; all are started again, with the same port. Only its host counts that. */
static void test_elastic_restart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 6, 5, 20, "29400", "0"},    {1, 0, 1, 6, 5.1, 20, "29400", "0"},
      {1, 1, 2, 6, 5.3, 20, "29400", "0"},  {1, 1, 3, 6, 5, 18, "29400", "0"},
      {1, 2, 4, 6, 5.2, 20, "29400", "0"},  {1, 2, 5, 6, 5, 20, "29400", "0"},
      {2, 0, 0, 6, 24, 50, "29400", "0"},   {2, 0, 1, 6, 24.5, 50, "29400", "0"},
      {2, 1, 2, 6, 24, 50, "29400", "1"},   {2, 1, 3, 6, 24.1, 50, "29400", "1"},
      {2, 2, 4, 6, 24.2, 50, "29400", "0"}, {2, 2, 5, 6, 24.7, 50, "29400", "0"}};
  check(state, all, COUNT(all), together);
}

static void test_wall_clocks_apart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 3, 5, 20, "29400", NULL},  {1, 1, 1, 3, 5, 20, "29400", NULL},
      {1, 2, 2, 3, 5, 20, "29400", NULL},  {2, 0, 0, 3, 22, 50, "29400", NULL},
      {2, 1, 1, 3, 23, 50, "29400", NULL}, {2, 2, 2, 3, 21, 50, "29400", NULL},
      {3, 0, 0, 3, 52, 55, "29400", NULL}, {3, 1, 1, 3, 52, 55, "29400", NULL},
      {3, 2, 2, 3, 52, 55, "29400", NULL}};
  check(state, all, COUNT(all), half_a_minute);
}

static void test_wall_clocks_an_hour_apart(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 3, 5, 20, "29400", NULL},  {1, 1, 1, 3, 5, 20, "29400", NULL},
      {1, 2, 2, 3, 5, 20, "29400", NULL},  {2, 0, 0, 3, 22, 50, "29400", NULL},
      {2, 1, 1, 3, 23, 50, "29400", NULL}, {2, 2, 2, 3, 21, 50, "29400", NULL}};
  check(state, all, COUNT(all), an_hour);
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
  check(state, all, COUNT(all), half_a_minute);
}

/* Of the first start only some ranks left a trace. The second is complete. */
static void test_traces_of_some_ranks(void **state) {
  static const struct one all[] = {
      {1, 0, 1, 4, 5, 7, "29400", "0"},   {1, 1, 2, 4, 5, 7, "29400", "0"},
      {2, 0, 0, 4, 10, 30, "29400", "1"}, {2, 0, 1, 4, 10.5, 30, "29400", "1"},
      {2, 1, 3, 4, 10, 30, "29400", "1"}, {2, 1, 2, 4, 11, 30, "29400", "1"}};
  check(state, all, COUNT(all), half_a_minute);
}

/* A rank that ends before another has begun belongs to the same start, if the launcher says so. */
static void test_one_start_whose_ranks_do_not_live_together(void **state) {
  static const struct one all[] = {{1, 0, 0, 4, 5, 6, "29400", "0"},
                                   {1, 0, 1, 4, 7, 9, "29400", "0"},
                                   {1, 1, 2, 4, 5, 8, "29400", "0"},
                                   {1, 1, 3, 4, 9, 9.5, "29400", "0"}};
  check(state, all, COUNT(all), together);
}

/* Without anything from a launcher: the same script, three times in a row. */
static void test_started_again_by_hand(void **state) {
  static const struct one all[] = {
      {1, 0, 0, 2, 5, 20, NULL, NULL},  {1, 0, 1, 2, 5, 20, NULL, NULL},
      {2, 0, 0, 2, 21, 30, NULL, NULL}, {2, 0, 1, 2, 22, 30, NULL, NULL},
      {3, 0, 1, 2, 31, 40, NULL, NULL}, {3, 0, 0, 2, 32, 40, NULL, NULL}};
  check(state, all, COUNT(all), together);
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_fixture, drop_fixture)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_DISK(test_elastic_restart),
      ON_DISK(test_wall_clocks_apart),
      ON_DISK(test_wall_clocks_an_hour_apart),
      ON_DISK(test_fewer_hosts),
      ON_DISK(test_traces_of_some_ranks),
      ON_DISK(test_one_start_whose_ranks_do_not_live_together),
      ON_DISK(test_started_again_by_hand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
