/* SPDX-License-Identifier: MIT
 *
 * Limits: the ring counts exactly the records that it overwrites, retained records stop at their
 * limit, and unused space does not stay on the disk.
 */
#include "core_child.h"

#include <pthread.h>

enum { CHUNK_RECORDS = (TSCOPE_CHUNK_BYTES - sizeof(struct tscope_chunk_header) - 8) / 16 };

struct play {
  const char *ring_max, *retained_max;
  u32 launches, threads;
};

static void *launch_all(void *more) {
  const struct play *play = more;
  for (u32 i = 0; i < play->launches; i++)
    CHILD_CHECK(hooked_launch(i));
  return NULL;
}

static void play_threads(void *more) {
  const struct play *play = more;
  pthread_t threads[16];
  setenv("TSCOPE_RING_MAX", play->ring_max, 1);
  for (u32 i = 0; i < play->threads; i++)
    CHILD_CHECK(pthread_create(&threads[i], NULL, launch_all, more) == 0);
  for (u32 i = 0; i < play->threads; i++)
    pthread_join(threads[i], NULL);
}

struct kept {
  u64 count;
  u32 least; /* lowest shape number seen */
  u8 seen[1 << 20];
};

static void keep(const struct trace_record *at, void *more) {
  struct kept *kept = more;
  const struct tscope_launch_record *launch = (const void *)at->record;
  if (launch->header.type != TSCOPE_REC_LAUNCH)
    return;
  kept->count++;
  kept->seen[launch->shape]++;
  if (launch->shape < kept->least)
    kept->least = launch->shape;
}

static struct kept kept;

static void read_kept(const struct scene *scene) {
  memset(&kept, 0, sizeof(kept));
  kept.least = UINT32_MAX;
  assert_true(trace_walk(&scene->trace, keep, &kept) >= 0);
}

static u64 lost(const struct scene *scene, enum tscope_loss reason) {
  return scene->trace.header->lost[reason];
}

static u32 ring_chunks(const struct trace *trace) {
  u32 chunks = 0;
  for (u32 i = 0; i < trace->chunks; i++)
    chunks += trace_chunk(trace, i)->retention == TSCOPE_RING;
  return chunks;
}

static void nothing_is_lost_below_the_cap(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "1M", .launches = 5 * CHUNK_RECORDS, .threads = 1};
  scene_play(&scene, play_threads, &play);
  read_kept(&scene);
  assert_int_equal(kept.count, play.launches);
  assert_int_equal(trace_all_lost(&scene.trace), 0);
  for (u32 i = 0; i < play.launches; i++)
    assert_int_equal(kept.seen[i], 1);
  scene_end(&scene);
}

static void oldest_detail_goes_first_and_is_counted(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "256K", .launches = 20 * CHUNK_RECORDS + 100, .threads = 1};
  scene_play(&scene, play_threads, &play);
  read_kept(&scene);
  assert_int_equal(ring_chunks(&scene.trace), 4);
  assert_int_equal(kept.count + lost(&scene, TSCOPE_LOSS_RING), play.launches);
  assert_int_equal(trace_all_lost(&scene.trace), lost(&scene, TSCOPE_LOSS_RING));
  /* What is left is the end of the recording without a gap: three full chunks and the last one. */
  assert_int_equal(kept.count, 3 * CHUNK_RECORDS + 100);
  assert_int_equal(kept.least, play.launches - kept.count);
  for (u32 i = kept.least; i < play.launches; i++)
    assert_int_equal(kept.seen[i], 1);
  scene_end(&scene);
}

static void every_thread_s_losses_are_counted(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "1M", .launches = 30000, .threads = 8};
  scene_play(&scene, play_threads, &play);
  read_kept(&scene);
  assert_int_equal(kept.count + trace_all_lost(&scene.trace), play.launches * play.threads);
  assert_true(ring_chunks(&scene.trace) <= 16);
  scene_end(&scene);
}

static void no_ring_at_all(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "0", .launches = 1000, .threads = 1};
  scene_play(&scene, play_threads, &play);
  read_kept(&scene);
  assert_int_equal(kept.count, 0);
  assert_int_equal(lost(&scene, TSCOPE_LOSS_RING), 1000);
  scene_end(&scene);
}

static void play_retained(void *more) {
  const struct play *play = more;
  setenv("TSCOPE_RETAINED_MAX", play->retained_max, 1);
  setenv("TSCOPE_RING_MAX", play->ring_max, 1);
  for (u64 i = 0; i < play->launches; i++) {
    struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
    CHILD_CHECK(thread);
    struct tscope_step_record step = {.step = i};
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_STEP, 0, &step, sizeof(step));
    if (i + 1 == play->launches)
      tscope_info(thread, TSCOPE_INFO_FEATURE, "last words", NULL);
    tscope_leave(thread);
  }
}

struct retained {
  u64 steps, facts;
};

static void count_retained(const struct trace_record *at, void *more) {
  struct retained *retained = more;
  const struct tscope_step_record *step = (const void *)at->record;
  if (at->record->type == TSCOPE_REC_STEP) {
    assert_int_equal(step->step, retained->steps);
    retained->steps++;
  }
  retained->facts += at->record->type == TSCOPE_REC_INFO && at->record->tag == TSCOPE_INFO_FEATURE;
}

static void retained_records_except_definitions_stop_at_the_limit(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "0", .retained_max = "1M", .launches = 200000};
  scene_play(&scene, play_retained, &play);
  struct retained retained = {0};
  assert_true(trace_walk(&scene.trace, count_retained, &retained) > 0);
  assert_true(retained.steps > 0 && lost(&scene, TSCOPE_LOSS_RETAINED) > 0);
  assert_int_equal(retained.steps + lost(&scene, TSCOPE_LOSS_RETAINED), play.launches);
  assert_int_equal(retained.facts, 1);
  assert_true(scene.trace.size <= TSCOPE_HEADER_BYTES + (1u << 20));
  scene_end(&scene);
}

static void unused_chunks_are_cut_off_at_the_end(void **state) {
  (void)state;
  struct scene scene;
  struct play play = {.ring_max = "256M", .launches = 10, .threads = 1};
  scene_play(&scene, play_threads, &play);
  assert_int_equal(scene.trace.size,
                   TSCOPE_HEADER_BYTES + (size_t)scene.trace.header->chunks * TSCOPE_CHUNK_BYTES);
  for (u32 i = 0; i < scene.trace.chunks; i++)
    assert_int_equal(trace_chunk(&scene.trace, i)->magic, TSCOPE_CHUNK_MAGIC);
  assert_true(scene.trace.chunks <= 3);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_lost_below_the_cap),
      cmocka_unit_test(oldest_detail_goes_first_and_is_counted),
      cmocka_unit_test(every_thread_s_losses_are_counted),
      cmocka_unit_test(no_ring_at_all),
      cmocka_unit_test(retained_records_except_definitions_stop_at_the_limit),
      cmocka_unit_test(unused_chunks_are_cut_off_at_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
