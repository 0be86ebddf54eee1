/* SPDX-License-Identifier: MIT
 *
 * What is recorded is read back the same: every type of record, times, durations, strings, facts.
 */
#include "core_child.h"

#include <unistd.h>

#include "process/reaped.h"
#include "record/trace_definitions.h"

/* The records of one type in a trace, in file order. */
struct found {
  u8 type;
  long count;
  struct trace_record at[128];
};

static void match(const struct trace_record *at, void *more) {
  struct found *found = more;
  if (at->record->type != found->type)
    return;
  if (found->count < 128)
    found->at[found->count] = *at;
  found->count++;
}

static struct found find(const struct trace *trace, u8 type) {
  struct found found = {.type = type};
  assert_true(trace_walk(trace, match, &found) >= 0);
  return found;
}

static struct tscope_thread *enter(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  CHILD_CHECK(thread);
  return thread;
}

static u8 filler(u8 type, size_t byte) {
  return (u8)(type * 7 + byte);
}

#define X(NAME, name, id, retention, doc)                                                          \
  static void write_##name(struct tscope_thread *thread) {                                         \
    struct tscope_##name##_record record;                                                          \
    for (size_t i = sizeof(record.header); i < sizeof(record); i++)                                \
      ((u8 *)&record)[i] = filler(id, i);                                                          \
    CHILD_CHECK(tscope_retain(thread, tscope_ticks(), id, 0xabcd, &record, sizeof(record)));       \
  }
TSCOPE_RECORDS(X)
#undef X

static void play_one_of_each(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  /* TIME is the only type that changes how later records are read. */
#define X(NAME, name, id, retention, doc)                                                          \
  if (id != TSCOPE_REC_TIME)                                                                       \
    write_##name(thread);
  TSCOPE_RECORDS(X)
#undef X
  tscope_leave(thread);
}

static void one_of_each_type(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_one_of_each, NULL);
  static const size_t sizes[256] = {
#define X(NAME, name, id, retention, doc) [id] = sizeof(struct tscope_##name##_record),
      TSCOPE_RECORDS(X)
#undef X
  };
  for (int type = 0; type < 256; type++) {
    if (!sizes[type] || type == TSCOPE_REC_TIME)
      continue;
    struct found found = find(&scene.trace, (u8)type);
    long ours = 0;
    for (long i = 0; i < found.count && i < 128; i++) {
      const struct tscope_record *record = found.at[i].record;
      if (record->tag != 0xabcd)
        continue;
      ours++;
      assert_int_equal(record->words * 8u, sizes[type]);
      assert_int_equal(found.at[i].chunk->retention, TSCOPE_RETAINED);
      for (size_t byte = sizeof(*record); byte < sizes[type]; byte++)
        assert_int_equal(((const u8 *)record)[byte], filler((u8)type, byte));
    }
    assert_int_equal(ours, 1);
  }
  scene_end(&scene);
}

enum { JUMPS = 5 };
static const i64 jumps[JUMPS] = {0, 20, 3600, -3600, 7 * 86400}; /* seconds */

static u64 ticks_at(u64 origin, i64 seconds) {
  return origin + (u64)(seconds * (i64)3000000000);
}

static void play_jumps(void *more) {
  u64 origin = *(u64 *)more;
  struct tscope_thread *thread = enter();
  for (u32 i = 0; i < JUMPS; i++) {
    struct tscope_launch_record *launch = tscope_reserve(
        thread, &thread->ring, ticks_at(origin, jumps[i]), TSCOPE_REC_LAUNCH, 0, sizeof(*launch));
    CHILD_CHECK(launch);
    launch->dur = 1;
    launch->shape = i;
    tscope_commit(&thread->ring, sizeof(*launch));
  }
  tscope_leave(thread);
}

static void times_far_apart_and_backwards(void **state) {
  (void)state;
  struct scene scene;
  u64 origin = 1ull << 50;
  scene_play(&scene, play_jumps, &origin);
  struct found launches = find(&scene.trace, TSCOPE_REC_LAUNCH);
  assert_int_equal(launches.count, JUMPS);
  for (long i = 0; i < launches.count; i++)
    assert_int_equal(launches.at[i].time,
                     ticks_at(origin, jumps[i]) >> scene.trace.header->tick_shift);
  assert_int_equal(find(&scene.trace, TSCOPE_REC_TIME).count, JUMPS - 1);
  scene_end(&scene);
}

static void play_other_clock(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  static struct tscope_writer writer;
  tscope_writer_init(&writer, TSCOPE_RING, TSCOPE_CLOCK_MONOTONIC);
  for (u64 i = 0; i < 3; i++) {
    struct tscope_gpu_kernel_record *kernel =
        tscope_reserve(thread, &writer, 5000000000u + i, TSCOPE_REC_GPU_KERNEL, 0, sizeof(*kernel));
    CHILD_CHECK(kernel);
    kernel->dur = 10;
    tscope_commit(&writer, sizeof(*kernel));
  }
  CHILD_CHECK(hooked_launch(1) || true);
  tscope_leave(thread);
}

static void writers_on_another_clock(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_other_clock, NULL);
  struct found kernels = find(&scene.trace, TSCOPE_REC_GPU_KERNEL);
  assert_int_equal(kernels.count, 3);
  for (u32 i = 0; i < 3; i++) {
    assert_int_equal(kernels.at[i].chunk->clock, TSCOPE_CLOCK_MONOTONIC);
    assert_int_equal(kernels.at[i].time, 5000000000u + i);
  }
  scene_end(&scene);
}

static void play_durations(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  u64 now = tscope_ticks(), hour = 3600ull * 3000000000u;
  for (u32 i = 0; i < 10000; i++) { /* enough to have a long one at the very end of a chunk */
    struct tscope_memcpy_record *copy =
        tscope_reserve(thread, &thread->ring, now - hour, TSCOPE_REC_MEMCPY, 0, sizeof(*copy));
    CHILD_CHECK(copy);
    copy->kind = TSCOPE_MEMCPY_D2H;
    copy->bytes = i;
    tscope_commit_dur(thread, &thread->ring, sizeof(*copy), now - hour);
  }
  tscope_leave(thread);
}

struct long_durations {
  u64 least;
  u64 count;
};

static void check_long(const struct trace_record *at, void *more) {
  struct long_durations *expected = more;
  const struct tscope_memcpy_record *copy = (const void *)at->record;
  if (copy->header.type != TSCOPE_REC_MEMCPY)
    return;
  u64 dur;
  memcpy(&dur, copy + 1, sizeof(dur));
  assert_int_equal(copy->dur, TSCOPE_DUR_LONG);
  assert_int_equal(copy->header.words, sizeof(*copy) / 8 + 1);
  assert_int_equal(copy->bytes, expected->count);
  assert_true(dur >= expected->least && dur < expected->least * 2);
  expected->count++;
}

static void durations_beyond_32_bits(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_durations, NULL);
  struct long_durations expected = {.least =
                                        3600ull * 3000000000u >> scene.trace.header->tick_shift};
  assert_true(trace_walk(&scene.trace, check_long, &expected) > 0);
  assert_int_equal(expected.count, 10000);
  scene_end(&scene);
}

static void play_spans(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  struct tscope_group_record group = {.group = 7, .calls = 2};
  u64 start = tscope_ticks();
  u64 *first = tscope_span_open(thread, start, TSCOPE_REC_GROUP, 1, &group, sizeof(group));
  u64 *second = tscope_span_open(thread, start, TSCOPE_REC_GROUP, 2, &group, sizeof(group));
  CHILD_CHECK(first && second && *first == TSCOPE_DUR_PENDING);
  tscope_span_close(thread, first, start);
  tscope_span_close(thread, NULL, start);
  tscope_leave(thread);
}

static void spans_pending_and_closed(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_spans, NULL);
  struct found groups = find(&scene.trace, TSCOPE_REC_GROUP);
  assert_int_equal(groups.count, 2);
  const struct tscope_group_record *first = (const void *)groups.at[0].record;
  const struct tscope_group_record *second = (const void *)groups.at[1].record;
  assert_true(first->dur < 1u << 31);
  assert_true(second->dur == TSCOPE_DUR_PENDING);
  assert_int_equal(second->group, 7);
  scene_end(&scene);
}

static char long_text[5000];

static void play_strings(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  CHILD_CHECK(tscope_string(thread, NULL) == 0);
  u32 same = tscope_string(thread, "gradient");
  CHILD_CHECK(same && tscope_string(thread, "gradient") == same);
  CHILD_CHECK(tscope_string_n(thread, "gradients", 8) == same);
  CHILD_CHECK(tscope_string(thread, "") != same);
  memset(long_text, 'x', sizeof(long_text) - 1);
  u32 cut = tscope_string(thread, long_text);
  long_text[4000] = 'y';
  CHILD_CHECK(cut && tscope_string(thread, long_text) != cut);
  struct tscope_scalar_record scalar = {.name = same, .step = cut};
  CHILD_CHECK(tscope_retain(thread, tscope_ticks(), TSCOPE_REC_SCALAR, 0, &scalar, sizeof(scalar)));
  tscope_info(thread, TSCOPE_INFO_FEATURE, "absent", "gloo");
  tscope_info(thread, TSCOPE_INFO_FEATURE, NULL, "nothing");
  tscope_leave(thread);
}

static void assert_text(const struct trace *trace, u32 number, const char *text) {
  struct trace_text found = trace_string(trace, number);
  assert_int_equal(found.bytes, strlen(text));
  assert_memory_equal(found.text, text, found.bytes);
}

static void strings_and_facts(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_strings, NULL);
  struct found scalars = find(&scene.trace, TSCOPE_REC_SCALAR);
  assert_int_equal(scalars.count, 1);
  const struct tscope_scalar_record *scalar = (const void *)scalars.at[0].record;
  assert_text(&scene.trace, scalar->name, "gradient");
  struct trace_text cut = trace_string(&scene.trace, (u32)scalar->step);
  assert_true(cut.bytes > 2000 && cut.bytes <= 8 * TSCOPE_MAX_RECORD_WORDS);
  struct found facts = find(&scene.trace, TSCOPE_REC_INFO);
  int features = 0;
  for (long i = 0; i < facts.count && i < 128; i++) {
    const struct tscope_info_record *fact = (const void *)facts.at[i].record;
    if (fact->header.tag != TSCOPE_INFO_FEATURE)
      continue;
    features++;
    assert_text(&scene.trace, fact->value, "absent");
    assert_text(&scene.trace, fact->detail, "gloo");
  }
  assert_int_equal(features, 1);
  scene_end(&scene);
}

/* More children end than there is room for before the helper comes. */
static void play_deaths(void *nothing) {
  (void)nothing;
  for (pid_t child = 1; child <= 257; child++)
    tscope_reaped_later((1 << 24) + child, 9);
  tscope_leave(enter());
  usleep(300 * 1000);
}

static void deaths_that_are_not_written_are_told(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_deaths, NULL);
  struct found facts = find(&scene.trace, TSCOPE_REC_INFO);
  int told = 0;
  for (long i = 0; i < facts.count && i < 128; i++) {
    const struct tscope_info_record *fact = (const void *)facts.at[i].record;
    struct trace_text what = trace_string(&scene.trace, fact->detail);
    told += fact->header.tag == TSCOPE_INFO_FEATURE &&
            strncmp(what.text, "signals that ended children", what.bytes) == 0;
  }
  assert_int_equal(told, 1);
  scene_end(&scene);
}

static void schema_of_every_type(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_strings, NULL);
  struct found schemas = find(&scene.trace, TSCOPE_REC_SCHEMA);
  long types = 0;
#define FIELD(type, field, doc) "," #field ":" #type
#define X(NAME, name, id, retention_, doc)                                                         \
  {                                                                                                \
    const struct tscope_schema_record *schema = (const void *)schemas.at[types++].record;          \
    const char *text = "" TSCOPE_FIELDS_##NAME(FIELD);                                             \
    assert_int_equal(schema->header.tag, id);                                                      \
    assert_int_equal(schema->retention, TSCOPE_##retention_);                                      \
    assert_int_equal(schema->bytes, strlen(text + 1));                                             \
    assert_memory_equal(schema + 1, text + 1, schema->bytes);                                      \
  }
  TSCOPE_RECORDS(X)
#undef X
#undef FIELD
  assert_int_equal(schemas.count, types);
  scene_end(&scene);
}

static void play_launches(void *more) {
  for (u32 i = 0; i < *(u32 *)more; i++)
    CHILD_CHECK(hooked_launch(i));
}

static void anchors_cost_and_losses_at_the_end(void **state) {
  (void)state;
  struct scene scene;
  cpu_set_t allowed;
  assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  u32 launches = 1000;
  scene_play(&scene, play_launches, &launches);
  const struct tscope_file_header *header = scene.trace.header;
  struct found anchors = find(&scene.trace, TSCOPE_REC_ANCHOR);
  assert_true(anchors.count >= 2);
  for (long i = 0; i < anchors.count && i < 128; i++) {
    const struct tscope_anchor_record *anchor = (const void *)anchors.at[i].record;
    double ns = (double)(anchor->ticks - header->start_ticks) * 1e9 / (double)header->tick_hz;
    double monotonic = (double)(anchor->monotonic_ns - header->start_monotonic_ns);
    double realtime = (double)(anchor->realtime_ns - header->start_realtime_ns);
    /* The header's frequency is an estimate within 0.1 %; the clocks were read within 1 ms. */
    assert_true(ns > monotonic * 0.999 - 1e6 && ns < monotonic * 1.001 + 1e6);
    assert_true(realtime > monotonic - 1e8 && realtime < monotonic + 1e8);
  }
  struct found looks = find(&scene.trace, TSCOPE_REC_SCHEDULING);
  assert_true(looks.count >= 1);
  const struct tscope_scheduling_record *look = (const void *)looks.at[0].record;
  assert_true(look->at_ns >= header->start_monotonic_ns && look->cpu_ns > 0);
  /* The job's own: tscope's do not count, but the poller may begin at this very moment, and a
   * sanitizer has a thread of its own. */
  assert_true(look->threads >= 1 && look->threads <= 3);
  assert_int_equal(look->cores, CPU_COUNT(&allowed));
  if (access("/proc/self/schedstat", R_OK) == 0)
    assert_true(look->wait_ns == 0 && look->training_wait_ns == 0); /* the first look */
  struct found costs = find(&scene.trace, TSCOPE_REC_COST);
  const struct tscope_cost_record *cost = (const void *)costs.at[costs.count - 1].record;
  assert_true(costs.count >= 1 && costs.count <= 128);
  assert_true(cost->records >= launches);
  assert_true(cost->startup_ns > 0 && cost->helper_cpu_ns > 0 && cost->hook_ns_per_record > 0);
  scene_end(&scene);
}

static void play_lose(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  tscope_count_lost(TSCOPE_LOSS_GPU, 41);
  tscope_count_lost(TSCOPE_LOSS_GPU, 1);
  tscope_leave(thread);
}

static void losses_are_in_header_and_stream(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_lose, NULL);
  assert_int_equal(scene.trace.header->lost[TSCOPE_LOSS_GPU], 42);
  struct found losses = find(&scene.trace, TSCOPE_REC_LOSS);
  const struct tscope_loss_record *last = (const void *)losses.at[losses.count - 1].record;
  assert_int_equal(last->header.tag, TSCOPE_LOSS_GPU);
  assert_int_equal(last->records, 42);
  scene_end(&scene);
}

static void play_many_names(void *nothing) {
  (void)nothing;
  struct tscope_thread *thread = enter();
  for (u32 i = 0; i < 60000; i++) {
    char name[17];
    snprintf(name, sizeof(name), "worker-%u", i);
    tscope_definitions_write_thread(1, i, name);
  }
  struct tscope_phase_record phase = {.name = tscope_string(thread, "after all of them")};
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_PHASE, 0, &phase, sizeof(phase));
  tscope_leave(thread);
}

static void names_of_threads_leave_room_for_others(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_many_names, NULL);
  assert_int_equal(scene.trace.header->lost[TSCOPE_LOSS_STRINGS], 0);
  struct found phases = find(&scene.trace, TSCOPE_REC_PHASE);
  const struct tscope_phase_record *phase = (const void *)phases.at[0].record;
  assert_int_equal(phases.count, 1);
  assert_true(phase->name > 4096 && phase->name < 5000);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_of_each_type),
      cmocka_unit_test(times_far_apart_and_backwards),
      cmocka_unit_test(writers_on_another_clock),
      cmocka_unit_test(durations_beyond_32_bits),
      cmocka_unit_test(spans_pending_and_closed),
      cmocka_unit_test(strings_and_facts),
      cmocka_unit_test(deaths_that_are_not_written_are_told),
      cmocka_unit_test(schema_of_every_type),
      cmocka_unit_test(anchors_cost_and_losses_at_the_end),
      cmocka_unit_test(losses_are_in_header_and_stream),
      cmocka_unit_test(names_of_threads_leave_room_for_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
