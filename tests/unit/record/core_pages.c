/* SPDX-License-Identifier: MIT
 *
 * After the kernel has written a page of the trace to the disk, the next store into it causes a
 * page fault. The helper must take this fault, not the job's thread, both in the chunk that is
 * being filled and in chunks that are reused. And how much memory the trace may take.
 */
#include "core_child.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/chunk_pool.h"
#include "record/process_trace.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { LAUNCHES_OF_A_CHUNK = (TSCOPE_CHUNK_BYTES - 64) / sizeof(struct tscope_launch_record) };

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

static void write_back(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  CHILD_CHECK(fd >= 0 && fdatasync(fd) == 0);
  close(fd);
}

static void launch(u32 n) {
  for (u32 i = 0; i < n; i++)
    CHILD_CHECK(hooked_launch(1));
}

/* The launch shows the helper that the chunk is in use. */
static void write_back_and_touch(void) {
  write_back(tscope_trace.path);
  launch(1);
  tscope_chunk_pool_touch();
}

/* The kernel may write pages back at any moment: one round in which it did not is enough. Without
 * the helper, each round takes a fault for every page. */
static void some_round_takes_no_faults(u32 launches) {
  long taken = 1;
  for (int round = 0; round < 5 && taken; round++) {
    write_back_and_touch();
    long before = faults();
    launch(launches);
    taken = faults() - before;
    if (taken)
      fprintf(stderr, "round %d: %ld page faults in %u launches\n", round, taken, launches);
  }
  CHILD_CHECK(taken == 0);
}

/* Whether a store into a page that was written back causes a fault here, and whether the kernel can
 * take the fault in advance. Uses a file of this test. */
static bool can_be_tested(const char *directory) {
  char path[128];
  snprintf(path, sizeof(path), "%s/pages", directory);
  const size_t bytes = 64 << 12;
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  volatile char *map = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_true(map != MAP_FAILED);
  for (size_t at = 0; at < bytes; at += 4096)
    map[at] = 1;
  assert_int_equal(fdatasync(fd), 0);
  long before = faults();
  for (size_t at = 0; at < bytes / 2; at += 4096)
    map[at] = 2;
  bool costs = faults() - before >= 32;
  bool helps = madvise((void *)(uintptr_t)(map + bytes / 2), bytes / 2, MADV_POPULATE_WRITE) == 0;
  munmap((void *)(uintptr_t)map, bytes);
  close(fd);
  unlink(path);
  if (!costs)
    print_message("skipped: the file system of %s is not one whose pages fault again\n", directory);
  else if (!helps)
    print_message("skipped: this kernel cannot take page faults before their time\n");
  return costs && helps;
}

/* Parts of the chunk that is being filled. */
static void play_filling(void *nothing) {
  (void)nothing;
  launch(LAUNCHES_OF_A_CHUNK / 16);
  some_round_takes_no_faults(LAUNCHES_OF_A_CHUNK / 8);
}

/* Chunks that are reused: the file is full, and all of it was written back. */
static void play_used_again(void *nothing) {
  (void)nothing;
  launch(1);
  launch(3 * tscope_chunk_pool.ring_max * LAUNCHES_OF_A_CHUNK);
  some_round_takes_no_faults(LAUNCHES_OF_A_CHUNK / 4 * 3); /* in at most two chunks */
}

static void no_faults(void (*play)(void *)) {
  struct scene scene;
  scene_directory(&scene);
  if (can_be_tested(scene.directory)) {
    scene_wait(&scene, scene_start(&scene, play, NULL));
    assert_true(scene_exited(&scene));
  }
  scene_clean(&scene);
}

static void the_chunk_being_filled_takes_no_faults(void **state) {
  (void)state;
  no_faults(play_filling);
}

static void chunks_used_again_take_no_faults(void **state) {
  (void)state;
  setenv("TSCOPE_RING_MAX", "1M", 1);
  no_faults(play_used_again);
}

static bool has_lock, let_go;

/* As mlockall() does it, which takes its time. */
static void *be_without_reserve(void *nothing) {
  CHILD_CHECK(tscope_chunk_pool_leave_reserve());
  __atomic_store_n(&has_lock, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
    usleep(1000);
  tscope_chunk_pool_take_reserve();
  return nothing;
}

static void play_limit(void *nothing) {
  (void)nothing;
  const u64 most = 128 << 20;
  pthread_t other;
  launch(1);
  CHILD_CHECK(pthread_create(&other, NULL, be_without_reserve, NULL) == 0);
  while (!__atomic_load_n(&has_lock, __ATOMIC_ACQUIRE))
    usleep(1000);
  tscope_chunk_pool_limit(most);
  __atomic_store_n(&let_go, true, __ATOMIC_RELEASE);
  pthread_join(other, NULL);
  while (__atomic_load_n(&tscope_trace.chunks_max, __ATOMIC_RELAXED) > most / TSCOPE_CHUNK_BYTES)
    usleep(1000);
}

static void a_limit_of_the_address_space_is_kept_as_soon_as_it_can_be(void **state) {
  (void)state;
  struct scene scene;
  unsetenv("TSCOPE_RING_MAX");
  scene_play(&scene, play_limit, NULL);
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_chunk_being_filled_takes_no_faults),
      cmocka_unit_test(chunks_used_again_take_no_faults),
      cmocka_unit_test(a_limit_of_the_address_space_is_kept_as_soon_as_it_can_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
