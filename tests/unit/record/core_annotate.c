/* SPDX-License-Identifier: MIT
 *
 * The functions of tscope.h become STEP, SCALAR and PHASE records.
 */
#include "core_child.h"

#include "tscope.h"

struct phase {
  u16 tag;
  bool open;
  u64 time, dur;
};

struct annotations {
  u64 steps[8];
  int step_count, scalar_count, phase_count;
  double values[8];
  u32 names[8];
  struct phase phases[128];
};

static void take(const struct trace_record *at, void *more) {
  struct annotations *found = more;
  if (at->record->type == TSCOPE_REC_STEP) {
    const struct tscope_step_record *step = (const void *)at->record;
    found->steps[found->step_count++] = step->step;
  } else if (at->record->type == TSCOPE_REC_SCALAR) {
    const struct tscope_scalar_record *scalar = (const void *)at->record;
    memcpy(&found->values[found->scalar_count], &scalar->bits, 8);
    found->names[found->scalar_count++] = scalar->name;
  } else if (at->record->type == TSCOPE_REC_PHASE) {
    const struct tscope_phase_record *phase = (const void *)at->record;
    found->phases[found->phase_count++] = (struct phase){
        .tag = phase->header.tag,
        .open = phase->dur == TSCOPE_DUR_PENDING,
        .time = at->time,
        .dur = phase->dur,
    };
  }
}

static void play_training(void *nothing) {
  (void)nothing;
  tscope_range_pop(); /* nothing is open */
  for (u64 step = 0; step < 2; step++) {
    TSCOPE_STEP(100 + step);
    TSCOPE_RANGE_PUSH("forward");
    TSCOPE_RANGE_PUSH("attention");
    TSCOPE_RANGE_POP();
    TSCOPE_RANGE_POP();
    TSCOPE_SCALAR("loss", 0.5 / (double)(step + 1), 100 + step);
  }
  tscope_range_push("optimizer_step");
}

static struct annotations found;

static void steps_scalars_and_ranges(void **state) {
  (void)state;
  struct scene scene;
  memset(&found, 0, sizeof(found));
  scene_play(&scene, play_training, NULL);
  assert_true(trace_walk(&scene.trace, take, &found) > 0);
  assert_int_equal(found.step_count, 2);
  assert_int_equal(found.steps[0], 100);
  assert_int_equal(found.steps[1], 101);
  assert_int_equal(found.scalar_count, 2);
  assert_true(found.values[0] == 0.5 && found.values[1] == 0.25);
  assert_int_equal(found.names[0], found.names[1]);
  assert_int_equal(trace_string(&scene.trace, found.names[0]).bytes, 4);
  assert_int_equal(found.phase_count, 5);
  for (int i = 0; i < 4; i += 2) {
    const struct phase *outer = &found.phases[i], *inner = outer + 1;
    assert_int_equal(outer->tag, TSCOPE_PHASE_FORWARD);
    assert_int_equal(inner->tag, TSCOPE_PHASE_USER);
    assert_true(outer->time <= inner->time &&
                inner->time + inner->dur <= outer->time + outer->dur + 1);
  }
  assert_int_equal(found.phases[4].tag, TSCOPE_PHASE_OPTIMIZER);
  assert_true(found.phases[4].open);
  scene_end(&scene);
}

static void play_deep(void *nothing) {
  (void)nothing;
  for (int i = 0; i < 100; i++)
    tscope_range_push("deep");
  for (int i = 0; i < 100; i++)
    tscope_range_pop();
  tscope_range_push("Backward pass");
  tscope_range_pop();
  tscope_range_push(NULL);
  tscope_scalar(NULL, 1, 1);
}

static void ranges_too_deep_do_not_confuse_later_ones(void **state) {
  (void)state;
  struct scene scene;
  memset(&found, 0, sizeof(found));
  scene_play(&scene, play_deep, NULL);
  assert_true(trace_walk(&scene.trace, take, &found) > 0);
  for (int i = 0; i < found.phase_count; i++)
    assert_false(found.phases[i].open);
  const struct phase *last = &found.phases[found.phase_count - 1];
  assert_int_equal(last->tag, TSCOPE_PHASE_BACKWARD);
  const struct tscope_file_header *header = (const void *)scene.trace.bytes;
  assert_int_equal(header->lost[TSCOPE_LOSS_RANGES], 100 - 64);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_scalars_and_ranges),
      cmocka_unit_test(ranges_too_deep_do_not_confuse_later_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
