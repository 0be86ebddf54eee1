/* SPDX-License-Identifier: MIT
 *
 * Steps that contain something other than training are recognised only if both their contents and
 * their period show it. In these runs every tenth step takes 400 ms longer than the 330 ms of the
 * other steps; the phases show where.
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
#include "analyses/steps/other_work.h"

#define LONGER (400 * MS)

enum place { IN_FORWARD, IN_BACKWARD, IN_DATA, IN_OTHER, NOT_KNOWN };

/* As for other work: by chance in at most one run of a hundred. */
static const struct recurrence_wanted rare = {OTHER_WORK_PERIOD, UINT32_MAX, 0, 0.01};

struct run {
  struct cluster *cluster;
  struct results *results;
};

/* Collectives of all but every `meet_every`-th step are put outside of the steps. */
static void leave_collectives(struct model *model, u32 meet_every) {
  for (u32 i = 0; i < model->n_collectives; i++)
    if (model->collectives[i].step % (i32)meet_every != (i32)meet_every - 1)
      model->collectives[i].step = -1;
}

static struct run run_of(struct cluster_options o, enum place place, u32 every, u32 meet_every) {
  o.slow_step = LONGER;
  o.slow_every = every;
  struct run run = {cluster_new(&o), NULL};
  struct model *model = &run.cluster->model;
  size_t cells = (size_t)model->steps.n * model->n_ranks;
  struct phase_times *phases = calloc(cells, sizeof(*phases));
  for (size_t i = 0; i < cells; i++) {
    i64 longer = i / model->n_ranks % every == every - 1 ? LONGER : 0;
    phases[i] = (struct phase_times){.data = place == IN_DATA ? longer : 0,
                                     .forward = 100 * MS + (place == IN_FORWARD ? longer : 0),
                                     .backward = 220 * MS + (place == IN_BACKWARD ? longer : 0),
                                     .optimizer = 5 * MS,
                                     .other = 5 * MS + (place == IN_OTHER ? longer : 0)};
  }
  model->phases = place == NOT_KNOWN ? NULL : phases;
  leave_collectives(model, meet_every);
  run.results = cluster_analyse(run.cluster, NULL);
  model->phases = NULL;
  free(phases);
  return run;
}

/* `late`: how much later than its peers rank 1 is in each step. `late_in`: [step * ranks + rank],
 * the same for each step and rank; NULL for none. */
static struct run run_with_lates(enum place place, u32 every, u32 meet_every, i64 late,
                                 i64 *late_in) {
  struct cluster_options o = healthy_cpu();
  o.waits[1] = late;
  o.late_input = late_in;
  return run_of(o, place, every, meet_every);
}

static struct run run_with_late(enum place place, u32 every, u32 meet_every, i64 late) {
  return run_with_lates(place, every, meet_every, late, NULL);
}

static struct run run_with_every(enum place place, u32 every, u32 meet_every) {
  return run_with_late(place, every, meet_every, 0);
}

static struct run run_with(enum place place) {
  return run_with_every(place, 10, 1);
}

static void end_run(struct run *run) {
  cluster_end(run->results, run->cluster);
}

static double other_line_s(const struct results *r) {
  for (u32 i = 0; i < r->n_budget; i++)
    if (!strcmp(budget_part_words[r->budget[i].part], "other than training"))
      return r->budget[i].seconds;
  return 0;
}

static void recurring_work_is_left_out(void **state) {
  static const struct {
    enum place place;
    const char *what, *action; /* the advice begins with `action` */
  } cases[] = {
      {IN_FORWARD, "forward only", "If this is validation"},
      {IN_OTHER, "outside forward, backward and optimizer", "Look at what the program does"}};
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct run run = run_with(cases[i].place);
    const struct results *r = run.results;
    assert_int_equal(r->n_other_work, 1);
    const struct other_work *work = &r->other_work[0];
    assert_string_equal(work->what, cases[i].what);
    assert_string_equal(work->steps, "steps 9, 19, 29 and 2 more");
    assert_true(work->period == 10 && work->n_steps == 5 && work->step[4] == 49);
    assert_true(fabs(work->ms - 400) < 1 && work->rank == INDEX_NONE);
    assert_true(r->training_steps == 43); /* of 50, two of them warm-up */
    assert_true(r->step_p95_ms < 1.01 * r->step_median_ms && r->step_median_ms < 400);
    assert_true(fabs(other_line_s(r) - 5 * (r->step_median_ms + 400) / 1e3) < 1e-2);
    assert_true(fabs(r->residual_s) < 1e-9);
    assert_true(fabs(r->analysed_s - r->wall_s) < 1e-3);
    assert_true(fabs(r->path_length_ms - r->step_mean_ms) < 0.01 * r->step_mean_ms);
    const struct finding *finding = finding_of(r, "TIMING.JITTER");
    assert_non_null(finding);
    assert_non_null(strstr(finding->title, "Steps 9, 19, 29 and 2 more"));
    assert_non_null(strstr(finding->title, "every 10 steps"));
    assert_true(fabs(finding->saving_s - 2) < 0.01);
    assert_true(strncmp(finding->action, cases[i].action, strlen(cases[i].action)) == 0);
    end_run(&run);
  }
}

/* For a rank that is late in every step the others wait in every step: what all do in every tenth
 * is not its work alone. */
static void work_of_all_is_not_that_of_the_late_rank(void **state) {
  (void)state;
  struct run run = run_with_late(IN_OTHER, 10, 1, 300 * MS);
  const struct results *r = run.results;
  assert_int_equal(r->n_other_work, 1);
  assert_string_equal(r->other_work[0].what, "outside forward, backward and optimizer");
  assert_true(r->other_work[0].rank == INDEX_NONE && fabs(r->other_work[0].ms - 400) < 1);
  assert_true(r->other_work[0].slowest == INDEX_NONE); /* it takes no longer with this work */
  end_run(&run);
}

/* All ranks do it in every tenth step, and one of them takes 100 ms longer: the others wait. Where
 * it is another rank each time, nobody is named. */
static void who_is_slowest_at_the_work_of_all_is_named(void **state) {
  enum { RANKS = 4, STEPS = 50 };
  (void)state;
  for (u32 turn = 0; turn < 2; turn++) {
    i64 late[STEPS * RANKS] = {0};
    for (u32 step = 9, k = 0; step < STEPS; step += 10, k++)
      late[step * RANKS + (turn ? k % RANKS : 2)] = 100 * MS;
    struct run run = run_with_lates(IN_OTHER, 10, 1, 0, late);
    const struct results *r = run.results;
    assert_int_equal(r->n_other_work, 1);
    const struct other_work *work = &r->other_work[0];
    assert_string_equal(work->what, "outside forward, backward and optimizer");
    assert_true(turn ? work->slowest == INDEX_NONE && isnan(work->slowest_ms)
                     : work->slowest == 2 && fabs(work->slowest_ms - 100) < 1);
    const char *title = finding_of(r, "TIMING.JITTER")->title;
    assert_true(!turn == (strstr(title, "100 ms of it for rank 2, the slowest") != NULL));
    end_run(&run);
  }
}

/* The results of a run without phases, in which the only other work is that of rank 1 alone. */
static struct results *work_of_rank_1(u32 ranks, u32 steps, i64 *late, struct cluster **c) {
  struct cluster_options o = healthy_cpu();
  o.ranks = ranks;
  o.steps = steps;
  o.late_input = late;
  *c = cluster_new(&o);
  struct results *r = cluster_analyse(*c, NULL);
  assert_int_equal(r->n_other_work, 1);
  assert_string_equal(r->other_work[0].what, "on rank 1 alone while the others wait");
  return r;
}

/* Without phases, too, what one rank does in every tenth step while the others wait, such as a
 * checkpoint, is that rank's work in these steps: it is no straggler of training. */
static void work_of_one_rank_needs_no_phases(void **state) {
  enum { RANKS = 8, STEPS = 50 };
  static i64 late[STEPS * RANKS];
  (void)state;
  for (u32 step = 9; step < STEPS; step += 10)
    late[step * RANKS + 1] = LONGER;
  struct cluster *c;
  struct results *r = work_of_rank_1(RANKS, STEPS, late, &c);
  assert_true(r->other_work[0].rank == 1 && r->other_work[0].period == 10);
  assert_true(fabs(r->other_work[0].ms - 400) < 1);
  assert_int_equal(stragglers_in(r), 0);
  cluster_end(r, c);
}

/* The rank that works alone in every tenth step is also late at times, as on a busy machine, but by
 * less than half of that. */
static void work_of_a_rank_that_is_late_at_times_is_found(void **state) {
  enum { RANKS = 2, STEPS = 120 };
  static i64 late[STEPS * RANKS];
  (void)state;
  for (u32 step = 0, seed = 1; step < STEPS; step++) {
    bool is_late = random_below(&seed, 100) < 30;
    late[step * RANKS + 1] = step % 10 == 9 ? LONGER : is_late ? LONGER * 9 / 20 : 0;
  }
  struct cluster *c;
  struct results *r = work_of_rank_1(RANKS, STEPS, late, &c);
  assert_true(r->other_work[0].period == 10 && r->other_work[0].n_steps == 12);
  cluster_end(r, c);
}

/* If the loader cannot keep up in every tenth step, that belongs to training; so does time without
 * a known cause. The report still gives the steps and their period. */
static void training_stays_training(void **state) {
  (void)state;
  for (enum place place = IN_FORWARD; place <= NOT_KNOWN; place++) {
    if (place == IN_FORWARD || place == IN_OTHER)
      continue;
    struct run run = run_with(place);
    const struct results *r = run.results;
    assert_int_equal(r->n_other_work, 0);
    assert_true(r->training_steps == 48 && other_line_s(r) == 0);
    const struct finding *finding = finding_of(r, "TIMING.JITTER");
    assert_non_null(finding);
    assert_non_null(strstr(finding->evidence, "steps 9, 19, 29 and 2 more"));
    assert_non_null(strstr(finding->evidence, "every 10 steps"));
    end_run(&run);
  }
}

static void check_turn(struct run *run, u32 period, const char *what) {
  const struct results *r = run->results;
  assert_int_equal(r->n_other_work, 0);
  assert_int_equal(r->n_turns, 1);
  assert_true(r->turns[0].period == period && fabs(r->turns[0].ms - 400) < 1);
  assert_true(fabs(r->turns[0].sum_s - 0.4 * r->turns[0].count) < 0.01);
  assert_non_null(strstr(r->turns[0].name, what));
  assert_true(r->training_steps == 48);
  assert_null(finding_of(r, "TIMING.JITTER"));
  end_run(run);
}

/* What every third or fourth step holds belongs to training, whatever it is: no step of these is
 * longer than it should be. */
static void short_periods_are_part_of_training(void **state) {
  static const char *const what[] = {[IN_FORWARD] = "forward only",
                                     [IN_BACKWARD] = "in backward, optimizer or input",
                                     [IN_DATA] = "in backward, optimizer or input",
                                     [IN_OTHER] = "outside forward, backward and optimizer",
                                     [NOT_KNOWN] = "in what is not known"};
  (void)state;
  for (u32 period = 3; period <= 4; period++)
    for (enum place place = IN_FORWARD; place <= NOT_KNOWN; place++) {
      struct run run = run_with_every(place, period, 1);
      check_turn(&run, period, what[place]);
    }
}

/* Training that synchronises its parameters every tenth step has collectives only there. */
static void synchronisation_is_part_of_training(void **state) {
  (void)state;
  struct run run = run_with_every(IN_OTHER, 10, 10);
  check_turn(&run, 10, "every 10th step takes 400 ms longer, with all_reduce");
}

/* Randomly placed long steps appear periodic in at most one of a hundred runs, as the threshold
 * promises. */
static void chance_makes_no_period(void **state) {
  enum { RUNS = 500, STEPS = 200 };
  static const struct recurrence_wanted in_turn = {2, OTHER_WORK_PERIOD - 1, 0, 0.01};
  u32 found = 0, found_in_turn = 0, seed = 1;
  (void)state;
  for (u32 i = 0; i < RUNS; i++) {
    struct long_step at[STEPS];
    struct long_steps steps = {.at = at, .end = STEPS};
    for (u32 step = 0; step < STEPS; step++) {
      if (random_below(&seed, 100) < 5) {
        double excess = 1 + (double)(seed >> 24);
        at[steps.n++] = (struct long_step){.step = step, .excess_ms = excess, .is_long = true};
      }
    }
    struct recurrence r;
    found += other_find_recurrence(&steps, &rare, &r);
    found_in_turn += other_find_recurrence(&steps, &in_turn, &r);
  }
  assert_true(found_in_turn <= RUNS / 50);
  assert_true(found <= RUNS / 50);
}

/* Two periods that share some steps are both found, even if another step is long once. */
/* From step 80 on all takes twice as long: before it validation is as short as what comes later. */
static void a_machine_that_becomes_slower_hides_no_period(void **state) {
  (void)state;
  struct cluster_options o = healthy_cpu();
  o.steps = 200;
  o.slow_from = 80;
  FILL(o.slow, o.ranks, 1.0);
  struct run run = run_of(o, IN_FORWARD, 25, 1);
  assert_int_equal(run.results->n_other_work, 1);
  const struct other_work *work = &run.results->other_work[0];
  assert_true(work->period == 25 && work->n_steps == 8 && work->step[0] == 24);
  assert_true(fabs(work->ms - 800) < 8); /* five of the eight */
  end_run(&run);
}

static void two_periods_are_found(void **state) {
  struct long_step at[20];
  struct long_steps steps = {.at = at, .end = 110};
  struct recurrence r;
  (void)state;
  for (u32 step = 0; step < steps.end; step++)
    if ((step && (step % 20 == 0 || step % 25 == 0)) || step == 33)
      at[steps.n++] =
          (struct long_step){.step = step, .excess_ms = step % 20 == 0 ? 100 : 40, .is_long = true};
  steps.first = 3;
  assert_true(other_find_recurrence(&steps, &rare, &r));
  assert_true(r.period == 20 && r.first == 20 && r.hits == 5);
  for (u32 i = 0; i < steps.n; i++)
    at[i].group = recurrence_has(&r, at[i].step);
  assert_true(other_find_recurrence(&steps, &rare, &r));
  assert_true(r.period == 25 && r.first == 25 && r.hits == 3);
}

/* Every tenth step validates, every 25th saves besides: of those that do both only the time says
 * so, less what is known of validation. If that is short in one of them, if nothing is known of
 * them, or if something else was found in them, it is every 50th. */
static void steps_that_have_known_work_too_halve_a_period(void **state) {
  (void)state;
  for (u32 i = 0; i < 4; i++) {
    u32 missing = i == 1 ? 150 : 0;
    struct long_step at[40];
    struct long_steps steps = {.at = at, .first = 3, .end = 200};
    struct recurrence r;
    for (u32 step = 10; step < steps.end; step++) {
      bool saves = step % 25 == 0 && (step != missing || !missing);
      if (step % 10 && !saves)
        continue;
      at[steps.n++] =
          (struct long_step){.step = step,
                             .excess_ms = saves ? 300 : 5,
                             .is_long = saves,
                             .has_known = i != 2 && step % 10 == 0,
                             .group = i == 3 && step % 50 == 0,
                             .content = step % 10 ? CONTENT_ONE_RANK : CONTENT_TRAINING};
    }
    struct recurrence_wanted wanted = rare;
    wanted.leave_out = 1u << CONTENT_TRAINING;
    assert_true(other_find_recurrence(&steps, &wanted, &r));
    assert_true(r.first == 25 && r.period == (i ? 50 : 25));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(recurring_work_is_left_out),
      cmocka_unit_test(work_of_all_is_not_that_of_the_late_rank),
      cmocka_unit_test(who_is_slowest_at_the_work_of_all_is_named),
      cmocka_unit_test(work_of_one_rank_needs_no_phases),
      cmocka_unit_test(work_of_a_rank_that_is_late_at_times_is_found),
      cmocka_unit_test(training_stays_training),
      cmocka_unit_test(short_periods_are_part_of_training),
      cmocka_unit_test(synchronisation_is_part_of_training),
      cmocka_unit_test(chance_makes_no_period),
      cmocka_unit_test(a_machine_that_becomes_slower_hides_no_period),
      cmocka_unit_test(two_periods_are_found),
      cmocka_unit_test(steps_that_have_known_work_too_halve_a_period),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
