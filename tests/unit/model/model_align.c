/* SPDX-License-Identifier: MIT
 *
 * Clock alignment with invented clocks: offsets of seconds and drifts of 50 ppm.
 */
#include "model_support.h"

#include "align/align.h"
#include "base/robust.h"
#include "model/internal.h"

static void test_median_and_line(void **state) {
  (void)state;
  i64 values[] = {5, 1, 4, 2, 3, 1000000};
  assert_int_equal(lower_median_i64(values, 6), 3);
  double x[101], y[101], scratch[101];
  for (int i = 0; i <= 100; i++) {
    x[i] = i * 1e7;
    y[i] = 1e9 + 50e-6 * x[i] + (i % 5 == 0 ? 1e8 : 0); /* a fifth are outliers */
  }
  struct line line = fit_line(x, y, 101, 500e-6, scratch);
  assert_float_equal(line.slope * 1e6, 50, 0.01);
  assert_float_equal(line_at(&line, 0), 1e9, 10);
  for (int i = 0; i <= 100; i++) /* noise without a trend */
    y[i] = i * 7919 % 101 * 1e4;
  assert_float_equal(fit_line(x, y, 101, 500e-6, scratch).slope, 0, 0);
}

/* The error of the alignment of rank r with rank 0 at a true time: how far apart one instant is on
 * the two in the model. */
static double error_us(const struct model *model, const struct tracegen_truth *truth, u32 r,
                       u64 at) {
  const struct rank_clock *clocks = internal_of(model)->clocks;
  i64 here = clock_to_axis(&clocks[r], (i64)tracegen_clock(&truth->ranks[r], at));
  i64 there = clock_to_axis(&clocks[0], (i64)tracegen_clock(&truth->ranks[0], at));
  return fabs((double)(here - there)) / 1e3;
}

static void check_recovery(struct fixture *fixture, struct tracegen_options *options,
                           double wanted_us) {
  struct tracegen_truth truth;
  struct model *model = generate(fixture, options, &truth);
  assert_true(model->clock_aligned);
  const u64 *begin = truth.step_begin;
  u64 end = begin[(size_t)options->steps * options->ranks];
  for (u32 r = 1; r < options->ranks; r++)
    for (u32 i = 0; i <= 10; i++) {
      double error = error_us(model, &truth, r, begin[0] + (end - begin[0]) * i / 10);
      if (error > wanted_us)
        fail_msg("rank %u is %.1f us off at %u0 %% of the run", r, error, i);
    }
  assert_true(model->clock_residual_us <= (double)options->end_noise_ns / 1e3);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Whatever two ranks are compared, at any time of the run: the truth lies within what is stated. */
static void check_error_covers(struct fixture *fixture, struct tracegen_options *options) {
  struct tracegen_truth truth;
  struct model *model = generate(fixture, options, &truth);
  const u64 *begin = truth.step_begin;
  u64 end = begin[(size_t)options->steps * options->ranks];
  assert_true(model->clock_aligned);
  for (u32 r = 1; r < options->ranks; r++)
    for (u32 i = 0; i <= 10; i++) {
      double error = error_us(model, &truth, r, begin[0] + (end - begin[0]) * i / 10);
      if (error > model_clock_error_ns(model, 0, r) / 1e3)
        fail_msg("rank %u is %.1f us off at %u0 %% of the run, %.1f us are stated", r, error, i,
                 model_clock_error_ns(model, 0, r) / 1e3);
    }
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_stated_error_covers_the_truth(void **state) {
  static const enum tracegen_flavour flavours[] = {TRACEGEN_NCCL, TRACEGEN_GLOO};
  for (u32 i = 0; i < 96; i++) {
    struct tracegen_options options = tracegen_defaults();
    char run[16];
    snprintf(run, sizeof(run), "covered%u", i);
    options.run = run;
    options.start_realtime_ns += (u64)i * 1000000000;
    options.skew_hosts = true;
    options.drift_ppm = i % 11 * 30;
    options.ranks = 4 + i % 3 * 2;
    options.ranks_per_host = 1 + i % 2;
    options.flavour = flavours[i / 2 % 2];
    options.phases = true;
    options.steps = i % 8 ? 30 : 300;
    options.transfer_ns = i % 3 ? 200000 : 20000000;
    options.end_noise_ns = i % 5 * 40000;
    options.end_pattern = i % 4 * 0.3;
    options.slow_rank = i % 7 ? (i % 7 - 1) % options.ranks : TSCOPE_UNKNOWN_RANK;
    check_error_covers(*state, &options);
  }
}

/* The ends themselves differ by up to 3 us between ranks, so alignment cannot be more exact. */
static void test_hostile_clocks_are_recovered(void **state) {
  struct tracegen_options options = tracegen_defaults();
  options.skew = true;
  options.ranks = 8;
  options.steps = 200;
  options.slow_rank = 3; /* arrives last: alignment must use ends, not starts */
  check_recovery(*state, &options, 3);
}

static void test_hostile_clocks_of_hosts_that_only_look_alike(void **state) {
  struct tracegen_options options = tracegen_defaults();
  options.skew = true;
  options.ranks = 12;
  options.ranks_per_host = 12;
  options.steps = 400;
  options.flavour = TRACEGEN_GLOO;
  options.phases = true;
  check_recovery(*state, &options, 3);
}

static void test_one_host_one_clock(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  struct model *model = generate(*state, &options, &truth);
  assert_string_equal(model->clock_method, "same host clock, confirmed by collective ends");
  for (u32 r = 0; r < model->n_ranks; r++)
    assert_true(error_us(model, &truth, r, truth.step_begin[0]) < 0.01);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_no_common_collective_is_refused(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.ranks = 6;
  options.islands = 2;
  struct model *model = generate(*state, &options, &truth);
  assert_false(model->clock_aligned);
  assert_true(isnan(model->clock_residual_us));
  assert_non_null(strstr(model->clock_method, "refused: ranks 1, 3, 5"));
  assert_true(isnan(model->ranks[1].clock.error_us));
  model_free(model);
  tracegen_truth_free(&truth);
}

/* The rank alone is compared with nobody: neither its clock nor a collective that it is in. */
static void check_left_alone(const struct model *model, u32 alone) {
  u32 compared = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    assert_int_equal(model->ranks[r].clock.aligned, r != alone);
    assert_true(r == alone || isinf(model_clock_error_ns(model, r, alone)));
    for (u32 q = 0; q < r; q++)
      assert_true(r == alone || q == alone || model_clock_error_ns(model, r, q) < 1e6);
  }
  for (u32 c = 0; c < model->n_collectives; c++) {
    const struct collective *collective = &model->collectives[c];
    bool has = false;
    for (u32 i = 0; i < collective->n_arrivals; i++)
      has |= model->arrivals[collective->first_arrival + i].rank == alone;
    assert_true(!has || collective->last_start == NS_UNKNOWN);
    compared += collective->last_start != NS_UNKNOWN;
  }
  assert_true(compared > 0);
}

/* The file of one rank is cut before its GPU times: the host's clock is used for it if the ends of
 * the other ranks confirm that clock, but not if they show that clocks differ. Then the others are
 * compared without it. */
static void test_rank_without_ends_shares_a_clock_that_holds(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.cut_rank = 1;
  options.cut_bytes = TSCOPE_HEADER_BYTES + 4000;
  struct model *model = generate(*state, &options, &truth);
  assert_true(model->clock_aligned);
  assert_non_null(strstr(model->clock_method, "not confirmed for all"));
  model_free(model);
  tracegen_truth_free(&truth);
  options.skew = true;
  options.run = "skewed";
  options.start_realtime_ns += 1000000000;
  model = generate(*state, &options, &truth);
  assert_true(model->clock_aligned && !model_all_aligned(model));
  assert_non_null(strstr(model->clock_method, "; but rank 1 (1 of 4, on node000) is not linked"));
  check_left_alone(model, 1);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Ends scatter by 40 transfers. Bounds still tie the clocks: the few calls that nothing delayed say
 * where they are. What is stated covers the truth, and is no smaller than a transfer's tenth. */
static void test_scatter_is_covered(void **state) {
  struct tracegen_options options = tracegen_defaults();
  options.skew = true;
  options.ranks_per_host = 1;
  options.transfer_ns = 50000;
  options.end_noise_ns = 2000000;
  check_error_covers(*state, &options);
}

static void test_host_calls_alone_do_not_align_hosts(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.gpu_spans = false;
  options.ranks_per_host = 2;
  struct model *model = generate(*state, &options, &truth);
  assert_false(model->clock_aligned);
  assert_non_null(strstr(model->clock_method, "no collective has a known end"));
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Groups that share only single ranks, as tensor and data parallel groups do: 0-1, 1-2, 2-3. The
 * model is made by hand, with local times only. */
static void test_chain_through_shared_ranks(void **state) {
  (void)state;
  enum { RANKS = 4, EACH = 50 };
  static const i64 offsets[RANKS] = {0, 2000000000, -1500000000, 700000000};
  static const double drifts[RANKS] = {0, 50e-6, -50e-6, 20e-6};
  struct rank ranks[RANKS] = {{.rank = 0, .host = "a"},
                              {.rank = 1, .host = "b"},
                              {.rank = 2, .host = "c"},
                              {.rank = 3, .host = "d"}};
  struct comm comms[3] = {{.size = 2}, {.size = 2}, {.size = 2}};
  struct collective collectives[3 * EACH] = {{0}};
  struct arrival arrivals[6 * EACH] = {{0}};
  struct clock_facts facts[RANKS] = {{.begin = 10000000000},
                                     {.begin = 10000000000},
                                     {.begin = 10000000000},
                                     {.begin = 10000000000}};
  for (u32 k = 0; k < 3 * EACH; k++) {
    i64 end = 10000000000 + (i64)k * 100000000;
    collectives[k] = (struct collective){.comm = k % 3,
                                         .seq = k / 3,
                                         .op = TSCOPE_OP_ALLREDUCE,
                                         .first_arrival = 2 * k,
                                         .n_arrivals = 2};
    for (u32 m = 0; m < 2; m++) {
      u32 r = k % 3 + m;
      i64 local = end + offsets[r] + (i64)(drifts[r] * (double)end);
      arrivals[2 * k + m] = (struct arrival){.rank = r, .start = local - 1000000, .end = local};
    }
  }
  struct model model = {.n_ranks = RANKS,
                        .n_comms = 3,
                        .n_collectives = 3 * EACH,
                        .n_arrivals = 6 * EACH,
                        .ranks = ranks,
                        .comms = comms,
                        .collectives = collectives,
                        .arrivals = arrivals};
  struct rank_clock clocks[RANKS];
  struct arena arena = {0};
  align_clocks(&model, facts, clocks, &arena, 0);
  assert_true(model.clock_aligned);
  for (u32 r = 1; r < RANKS; r++)
    for (i64 at = 10000000000; at <= 25000000000; at += 1000000000) {
      i64 here = clock_to_axis(&clocks[r], at + offsets[r] + (i64)(drifts[r] * (double)at));
      i64 there = clock_to_axis(&clocks[0], at);
      assert_in_range(here - there + 1000, 0, 2000);
    }
  arena_release(&arena);
}

enum { DRAWS = 100, MOST_STEPS = 4000 };

/* A reproducible draw in [0, 1): Knuth's MMIX generator. */
static double draw(u64 *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) / 9007199254740992.0;
}

/* A run of two hosts: how their clocks differ, how long steps and transfers take, and by how much
 * threads notice the end of a transfer late. */
struct drifting {
  double drift; /* of host b, per ns */
  u32 steps;
  double step_ns, transfer_ns, late_ns;
  bool bursts; /* delays last for a while */
};

static double late_by(const struct drifting *run, double *burst, u64 *state) {
  if (!run->bursts || draw(state) < 0.05)
    *burst = -log(1 - draw(state)) * run->late_ns;
  return *burst * draw(state);
}

/* Made by hand, with local times only. Both host threads start when their own part of the step is
 * over, and notice the end after the last has started and the data went over. */
static struct model drifting_model(const struct drifting *run, struct collective *collectives,
                                   struct arrival *arrivals, u64 *state) {
  double now = 1e10, burst[2] = {0, 0};
  for (u32 k = 0; k < run->steps; k++) {
    double start[2], last = 0;
    collectives[k] = (struct collective){.seq = k,
                                         .op = TSCOPE_OP_ALLREDUCE,
                                         .bytes = 1 << 20,
                                         .first_arrival = 2 * k,
                                         .n_arrivals = 2};
    for (u32 r = 0; r < 2; r++) {
      start[r] = now + run->step_ns * (1 + draw(state) / 4) + late_by(run, &burst[r], state);
      last = fmax(last, start[r]);
    }
    now = last + run->transfer_ns * (1 + draw(state));
    for (u32 r = 0; r < 2; r++) {
      double end = now + draw(state) * run->transfer_ns / 4 + late_by(run, &burst[r], state);
      double rate = 1 + (r ? run->drift : 0), ahead = r ? 7.2e12 : 0;
      arrivals[2 * k + r] = (struct arrival){
          .rank = r, .start = (i64)(start[r] * rate + ahead), .end = (i64)(end * rate + ahead)};
    }
  }
  return (struct model){.n_ranks = 2,
                        .n_comms = 1,
                        .n_collectives = run->steps,
                        .n_arrivals = 2 * run->steps,
                        .collectives = collectives,
                        .arrivals = arrivals};
}

/* Whether drift and place of host b lie within what is stated, throughout the run. Where nothing is
 * stated, that is not wrong, and counted. */
static bool is_covered(const struct drifting *run, u64 *state, u32 *refused) {
  static struct collective collectives[MOST_STEPS];
  static struct arrival arrivals[2 * MOST_STEPS];
  struct rank ranks[2] = {{.rank = 0, .host = "a"}, {.rank = 1, .host = "b"}};
  struct comm comms[1] = {{.size = 2}};
  struct model model = drifting_model(run, collectives, arrivals, state);
  struct clock_facts facts[2] = {{.begin = 10000000000},
                                 {.begin = (i64)(1e10 * (1 + run->drift) + 7.2e12)}};
  struct rank_clock clocks[2];
  struct arena arena = {0};
  model.ranks = ranks;
  model.comms = comms;
  align_clocks(&model, facts, clocks, &arena, 0);
  const struct clock_fit *fit = &ranks[1].clock;
  bool covered = fabs(fit->drift_ppm + run->drift / (1 + run->drift) * 1e6) <= fit->drift_error_ppm;
  double first = (double)arrivals[0].end, last = (double)arrivals[2 * run->steps - 2].end;
  for (u32 i = 0; i <= 10; i++) {
    double at = first + (last - first) * i / 10;
    i64 here = clock_to_axis(&clocks[1], (i64)(at * (1 + run->drift) + 7.2e12));
    covered &= fabs((double)here - at) <= fit->error_us * 1e3;
  }
  arena_release(&arena);
  *refused += !model.clock_aligned;
  return covered || !model.clock_aligned;
}

/* Runs of a second to half an hour, on quiet hosts and on busy ones. */
static void a_drift_lies_within_what_is_stated(void **state) {
  (void)state;
  static const double ppm[] = {-300, -200, -50, 0, 0, 20, 100, 200, 300};
  static const u32 steps[] = {20, 60, 400, MOST_STEPS};
  static const double late_ns[] = {10e3, 300e3, 5e6};
  u64 random = 20261124;
  for (u32 kind = 0; kind < 24; kind++) {
    u32 covered = 0, refused = 0;
    for (u32 i = 0; i < DRAWS; i++) {
      const struct drifting run = {.drift = ppm[i % 9] / 1e6,
                                   .steps = steps[kind % 4],
                                   .step_ns = kind % 2 ? 40e6 : 400e6,
                                   .transfer_ns = i % 2 ? 500e3 : 5e6,
                                   .late_ns = late_ns[kind / 4 % 3],
                                   .bursts = kind / 12};
      covered += is_covered(&run, &random, &refused);
    }
    if (covered < DRAWS - DRAWS / 100 || refused > DRAWS / 4)
      fail_msg("%u steps, late by %.0f us%s: %u of %u are covered, %u refused", steps[kind % 4],
               late_ns[kind / 4 % 3] / 1e3, kind / 12 ? " in bursts" : "", covered, DRAWS, refused);
  }
}

/* One host of three is lost in the last steps but one, while two collectives are on their way: what
 * the others leave then has failed, and who comes late for a checkpoint leaves at once. Their
 * clocks are known by the steps before. */
static void what_failed_ties_no_clocks(void **state) {
  (void)state;
  enum { HOSTS = 3, STEPS = 22, FAILED = 20 };
  static const i64 ahead[HOSTS] = {0, 7200000000000, -3000000000000};
  struct collective collectives[STEPS];
  struct arrival arrivals[STEPS * HOSTS];
  struct rank ranks[HOSTS] = {{.host = "a"}, {.rank = 1, .host = "b"}, {.rank = 2, .host = "c"}};
  struct comm comms[1] = {{.size = HOSTS}};
  struct clock_facts facts[HOSTS] = {{.begin = 0}, {.begin = ahead[1]}, {.begin = ahead[2]}};
  struct rank_clock clocks[HOSTS];
  struct arena arena = {0};
  for (u32 k = 0; k < STEPS; k++) {
    collectives[k] = (struct collective){.seq = k,
                                         .op = TSCOPE_OP_ALLREDUCE,
                                         .bytes = 1 << 20,
                                         .first_arrival = HOSTS * k,
                                         .n_arrivals = k < STEPS - 1 ? HOSTS : HOSTS - 1};
    for (u32 r = 0; r < HOSTS; r++) {
      i64 start = k * 50000000ll + r * 100000, end = k * 50000000ll + 2000000 + r % 2 * 50000;
      start += k == FAILED && r < 2 ? 3000000000 - 1000000000 * r : 0;
      if (k >= FAILED)
        end = r == 2 ? NS_UNKNOWN : start + (r ? 200000 : 700000000);
      arrivals[HOSTS * k + r] = (struct arrival){
          .rank = r, .start = start + ahead[r], .end = end == NS_UNKNOWN ? end : end + ahead[r]};
    }
  }
  struct model model = {.n_ranks = HOSTS,
                        .n_comms = 1,
                        .n_collectives = STEPS,
                        .n_arrivals = STEPS * HOSTS - 1,
                        .collectives = collectives,
                        .arrivals = arrivals,
                        .ranks = ranks,
                        .comms = comms};
  align_clocks(&model, facts, clocks, &arena, 0);
  assert_true(model.clock_aligned);
  for (u32 r = 0; r < HOSTS; r++) {
    i64 off =
        clock_to_axis(&clocks[r], 500000000 + ahead[r]) - clock_to_axis(&clocks[0], 500000000);
    assert_true(llabs(off) <= (i64)(ranks[r].clock.error_us * 1e3) + 1000);
    assert_true(ranks[r].clock.error_us < 2500); /* a transfer takes 2 ms */
  }
  arena_release(&arena);
}

/* The wall clock of a damaged file is not subtracted: the difference would overflow. */
static void wall_clocks_that_no_clock_shows(void **state) {
  static const i64 wild[] = {INT64_MIN, INT64_MAX, -(1ll << 62), 1ll << 62};
  struct clock_facts right = {.realtime_minus_monotonic = 1800000000000000000},
                     later = {.realtime_minus_monotonic = 1800000000000000500};
  (void)state;
  assert_int_equal(clock_realtime_difference(&later, &right), 500);
  assert_int_equal(clock_realtime_difference(&right, &later), -500);
  for (size_t i = 0; i < LENGTH_OF(wild); i++) {
    struct clock_facts damaged = {.realtime_minus_monotonic = wild[i]};
    assert_int_equal(clock_realtime_difference(&damaged, &right), NS_UNKNOWN);
    assert_int_equal(clock_realtime_difference(&right, &damaged), NS_UNKNOWN);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_median_and_line),
      WITH_FOLDER(test_hostile_clocks_are_recovered),
      WITH_FOLDER(test_hostile_clocks_of_hosts_that_only_look_alike),
      WITH_FOLDER(test_one_host_one_clock),
      WITH_FOLDER(test_no_common_collective_is_refused),
      WITH_FOLDER(test_rank_without_ends_shares_a_clock_that_holds),
      WITH_FOLDER(test_scatter_is_covered),
      WITH_FOLDER(test_stated_error_covers_the_truth),
      WITH_FOLDER(test_host_calls_alone_do_not_align_hosts),
      cmocka_unit_test(test_chain_through_shared_ranks),
      cmocka_unit_test(a_drift_lies_within_what_is_stated),
      cmocka_unit_test(what_failed_ties_no_clocks),
      cmocka_unit_test(wall_clocks_that_no_clock_shows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
