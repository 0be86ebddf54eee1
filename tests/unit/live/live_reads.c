/* SPDX-License-Identifier: MIT
 *
 * Reads a trace while it is written. The expected result is what the analyzer's own reader finds in
 * the whole file: each look adds records, and in the end all of them came, and none twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "import/tscope/files/visit.h"
#include "live/live_process.h"
#include "live/live_run.h"
#include "scratch.h"
#include "trace_writer.h"

enum { CHUNK = 4096, HEADER = 4096 };

/* A record as a look or the analyzer's reader found it. */
struct known {
  u64 place, hash;
};
struct received {
  VECTOR(struct known) records;
  u32 again;
  u64 torn;   /* records with words of different generations */
  u64 newest; /* stamp */
};

static u64 hash_of(const struct tscope_record *record, u64 time, u32 thread, u8 clock) {
  u64 hash = hash_bytes(HASH_SEED, record, 8u * record->words);
  return hash_bytes(hash, &(u64[]){time, thread, clock}, 3 * sizeof(u64));
}

static void add_known(struct received *received, struct known known, bool again) {
  if (!again) {
    VECTOR_PUSH(&received->records, known);
    return;
  }
  received->again++;
  for (u32 i = 0; i < received->records.n; i++)
    if (received->records.at[i].place == known.place) {
      received->records.at[i] = known;
      return;
    }
  fail_msg("a span ended that was never told");
}

static void take(void *user, const struct trace_chunk *chunk) {
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    add_known(user,
              (struct known){chunk->place + (u64)((const u8 *)record - chunk->records),
                             hash_of(record, trace_time(&cursor, record), chunk->header.thread,
                                     chunk->header.clock)},
              chunk->again);
}

static const struct ring_share everything = {.all = true};

static int look(struct trace_follow *file, struct ring_share ring, struct received *received) {
  return trace_follow_look(file, ring, take, received);
}

static int by_place(const void *left, const void *right) {
  const struct known *a = left, *b = right;
  return a->place < b->place ? -1 : a->place > b->place;
}

/* What a visit of the whole file finds now. */
static struct received read_whole(const char *path) {
  struct received truth = {0};
  struct trace_visit visit = {
      .chunks = TRACE_RETAINED | TRACE_RING, .on_chunk = take, .user = &truth};
  struct trace_file file;
  char why[256];
  assert_int_equal(trace_file_open(&file, path, why, sizeof(why)), 0);
  trace_visit(&file, &visit);
  trace_file_close(&file);
  return truth;
}

static void compare(struct received *received, struct received *truth) {
  assert_true(truth->records.n > 0);
  assert_int_equal(received->records.n, truth->records.n);
  qsort(received->records.at, received->records.n, sizeof(struct known), by_place);
  qsort(truth->records.at, truth->records.n, sizeof(struct known), by_place);
  assert_memory_equal(received->records.at, truth->records.at,
                      truth->records.n * sizeof(struct known));
}

static void forget(struct received *received) {
  free(received->records.at);
  *received = (struct received){0};
}

static char folder[] = "/tmp/tscope-live-XXXXXX";
static char path[128];

static struct trace_writer *new_file(u32 pid, u64 start) {
  struct tscope_file_header facts = {.header_bytes = HEADER,
                                     .chunk_bytes = CHUNK,
                                     .tick_source = TSCOPE_TICK_MONOTONIC,
                                     .tick_hz = 1000000000,
                                     .pid = pid,
                                     .rank = 0,
                                     .world_size = 1,
                                     .start_ticks = start,
                                     .start_monotonic_ns = start,
                                     .start_realtime_ns = start,
                                     .host = "here",
                                     .run = "run"};
  return trace_writer_new(&facts);
}

/* Two threads, both retentions, both clocks, times that need TIME records, open spans. */
static struct trace_writer *lively_file(void) {
  struct trace_writer *writer = new_file(7, 1000);
  const struct trace_place places[] = {{0, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS},
                                       {1, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS},
                                       {1, TSCOPE_RING, TSCOPE_CLOCK_TICKS},
                                       {2, TSCOPE_RETAINED, TSCOPE_CLOCK_MONOTONIC},
                                       {2, TSCOPE_RING, TSCOPE_CLOCK_MONOTONIC}};
  for (u32 i = 0; i < 1500; i++) {
    struct trace_place place = places[i % 5];
    u64 time = 5000 + i * 40000000ull;
    if (place.retention == TSCOPE_RING) {
      struct tscope_launch_record *launch =
          trace_add(writer, place, time, TSCOPE_REC_LAUNCH, 3, sizeof(*launch));
      launch->dur = i;
    } else {
      struct tscope_collective_record *call =
          trace_add(writer, place, time, TSCOPE_REC_COLLECTIVE, TSCOPE_OP_ALLREDUCE, sizeof(*call));
      call->dur = 1000 + i;
      call->seq = i;
    }
    trace_string(writer, i % 11 ? "a" : "another");
  }
  return writer;
}

static void put(const void *data, size_t bytes) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, data, bytes), bytes);
  close(fd);
}

static void put_at(size_t offset, const void *data, size_t bytes) {
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  assert_int_equal(pwrite(fd, data, bytes, (off_t)offset), bytes);
  close(fd);
}

static void open_file(struct trace_follow *file) {
  char why[256];
  assert_int_equal(trace_follow_open(file, path, why, sizeof(why)), 0);
}

/* The worst case of a copy or a shared file system: the file grows by a few bytes at a time. */
static void grows_byte_by_byte(void **state) {
  (void)state;
  struct trace_writer *writer = lively_file();
  struct received received = {0}, truth;
  struct trace_follow file;
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  put(data, HEADER);
  open_file(&file);
  int fd = open(path, O_WRONLY | O_APPEND);
  for (size_t at = HEADER; at < bytes;) {
    size_t some = at % 4096 < 600 ? 1 : 7; /* byte by byte around the headers of chunks */
    some = some < bytes - at ? some : bytes - at;
    assert_int_equal(write(fd, data + at, some), some);
    at += some;
    assert_int_equal(look(&file, everything, &received), 0);
  }
  close(fd);
  truth = read_whole(path);
  compare(&received, &truth);
  forget(&truth);
  forget(&received);
  trace_follow_close(&file);
  trace_writer_free(writer);
}

static u32 chunks_of(size_t bytes) {
  return (u32)((bytes - HEADER + CHUNK - 1) / CHUNK);
}

/* A thread fills its chunks one after the other, in the order of the file. */
static bool is_its_turn(const u8 *now, const u8 *data, u32 index) {
  const struct tscope_chunk_header *mine = (const void *)(data + HEADER + (size_t)index * CHUNK);
  for (u32 c = 0; c < index; c++) {
    const struct tscope_chunk_header *so_far = (const void *)(now + HEADER + (size_t)c * CHUNK);
    const struct tscope_chunk_header *whole = (const void *)(data + HEADER + (size_t)c * CHUNK);
    bool same = whole->thread == mine->thread && whole->retention == mine->retention &&
                whole->clock == mine->clock;
    if (so_far->committed == 0 || (same && so_far->committed != whole->committed))
      return false;
  }
  return true;
}

/* The way the shim writes: the whole chunk exists from the beginning, and `committed` grows record
 * by record. */
static void takes_what_is_committed(void **state) {
  (void)state;
  struct trace_writer *writer = lively_file();
  struct received received = {0}, truth;
  struct trace_follow file;
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  u8 *now = malloc(bytes);
  u32 n = chunks_of(bytes), left = n;
  memcpy(now, data, bytes);
  for (u32 c = 0; c < n; c++) { /* the chunk is empty, with garbage in the place of records */
    struct tscope_chunk_header *header = (void *)(now + HEADER + (size_t)c * CHUNK);
    memset(header + 1, 0x5a, CHUNK - sizeof(*header));
    header->committed = 0;
  }
  put(now, bytes);
  open_file(&file);
  for (u64 round = 0; left; round++) {
    left = 0;
    for (u32 c = 0; c < n; c++) {
      size_t place = HEADER + (size_t)c * CHUNK;
      struct tscope_chunk_header *header = (void *)(now + place);
      const struct tscope_chunk_header *last = (const void *)(data + place);
      u32 so_far = (u32)header->committed, all = (u32)last->committed;
      if (so_far == all || (round + c) % 3 == 0 || !is_its_turn(now, data, c)) {
        left += so_far != all;
        continue;
      }
      const u8 *record = data + place + sizeof(*header) + so_far;
      u32 length = 8u * ((const struct tscope_record *)(const void *)record)->words;
      put_at(place + sizeof(*header) + so_far, record, length);
      header->committed += (1ull << 32) + length;
      put_at(place + offsetof(struct tscope_chunk_header, committed), &header->committed, 8);
      left++;
    }
    u32 before = received.records.n;
    assert_int_equal(look(&file, everything, &received), 0);
    if (round % 16 == 0) {
      truth = read_whole(path);
      assert_int_equal(received.records.n, truth.records.n);
      forget(&truth);
    }
    assert_true(received.records.n >= before);
  }
  truth = read_whole(path);
  compare(&received, &truth);
  u64 read = file.read_bytes;
  assert_int_equal(look(&file, everything, &received), 0);
  assert_int_equal(received.records.n, truth.records.n);
  assert_true(file.read_bytes - read < bytes / 2); /* headers are read again, but not the records */
  forget(&truth);
  forget(&received);
  trace_follow_close(&file);
  free(now);
  trace_writer_free(writer);
}

static void spans_come_again_when_they_end(void **state) {
  (void)state;
  struct trace_writer *writer = lively_file();
  struct received received = {0}, truth;
  struct trace_follow file;
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  put(data, bytes);
  truth = read_whole(path);
  const u64 pending = TSCOPE_DUR_PENDING;
  size_t places[3];
  u32 found = 0;
  for (u32 i = truth.records.n; i-- > 0 && found < 3;) {
    const struct tscope_record *record = (const void *)(data + truth.records.at[i].place);
    if (record->type == TSCOPE_REC_COLLECTIVE)
      places[found++] = truth.records.at[i].place + sizeof(*record);
  }
  assert_int_equal(found, 3);
  for (u32 i = 0; i < 3; i++)
    put_at(places[i], &pending, sizeof(pending));
  open_file(&file);
  assert_int_equal(look(&file, everything, &received), 0);
  assert_int_equal(look(&file, everything, &received), 0);
  assert_int_equal(received.again, 0);
  for (u32 i = 0; i < 3; i++) {
    put_at(places[i], data + places[i], 8);
    assert_int_equal(look(&file, everything, &received), 0);
    assert_int_equal(received.again, i + 1);
  }
  compare(&received, &truth);
  forget(&truth);
  forget(&received);
  trace_follow_close(&file);
  trace_writer_free(writer);
}

/* A ring chunk that is used again while it is read. */

struct recycler {
  u8 *map;
  bool stop;
};

/* The protocol of the shim (preload/record/chunk_pool.c): it empties the chunk, gives it a new
 * generation, and only then writes to it. Each record contains the number of its generation in
 * every word. */
static void fill_again(struct tscope_chunk_header *chunk, u64 generation) {
  __atomic_store_n(&chunk->committed, 0, __ATOMIC_SEQ_CST);
  chunk->generation = generation;
  __atomic_thread_fence(__ATOMIC_RELEASE);
  chunk->sequence = (u32)generation;
  u64 committed = 0;
  while ((u32)committed + 32 + sizeof(*chunk) <= CHUNK) {
    struct tscope_alloc_record *alloc = (void *)((u8 *)(chunk + 1) + (u32)committed);
    *alloc = (struct tscope_alloc_record){
        .header = {.type = TSCOPE_REC_ALLOC, .words = 4, .time = (u32)generation},
        .dur = (u32)generation,
        .result = (u32)generation,
        .address = generation,
        .bytes = generation};
    committed += (1ull << 32) + 32;
    __atomic_store_n(&chunk->committed, committed, __ATOMIC_RELEASE);
  }
}

static void *recycle(void *user) {
  struct recycler *recycler = user;
  for (u64 generation = 1; !__atomic_load_n(&recycler->stop, __ATOMIC_RELAXED); generation++)
    fill_again((void *)(recycler->map + HEADER), generation);
  return NULL;
}

static void check_stamp(struct received *received, const struct tscope_alloc_record *alloc) {
  u64 stamp = alloc->address;
  received->torn += alloc->bytes != stamp || alloc->dur != (u32)stamp ||
                    alloc->result != (u32)stamp || alloc->header.time != (u32)stamp ||
                    stamp < received->newest;
  received->newest = stamp;
  received->again++;
}

static void check_stamps(void *user, const struct trace_chunk *chunk) {
  struct trace_cursor cursor = trace_records(chunk);
  for (const struct tscope_record *record; (record = trace_next(&cursor));)
    check_stamp(user, (const void *)record);
}

static void never_shows_a_torn_record(void **state) {
  (void)state;
  struct trace_writer *writer = new_file(7, 1000);
  trace_add(writer, (struct trace_place){1, TSCOPE_RING, TSCOPE_CLOCK_TICKS}, 1 << 30,
            TSCOPE_REC_ALLOC, 0, 32);
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  put(data, bytes);
  int fd = open(path, O_RDWR);
  assert_int_equal(ftruncate(fd, HEADER + CHUNK), 0);
  struct recycler recycler = {
      .map = mmap(NULL, HEADER + CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)};
  assert_true(recycler.map != MAP_FAILED);
  ((struct tscope_file_header *)(void *)recycler.map)->lost[TSCOPE_LOSS_RING] = 1;
  ((struct tscope_chunk_header *)(void *)(recycler.map + HEADER))->base = 0;
  fill_again((void *)(recycler.map + HEADER), 0);
  struct trace_follow file;
  open_file(&file);
  pthread_t thread;
  struct received received = {0};
  assert_int_equal(pthread_create(&thread, NULL, recycle, &recycler), 0);
  for (u32 i = 0; i < 20000 || received.newest < 3; i++)
    assert_int_equal(trace_follow_look(&file, everything, check_stamps, &received), 0);
  __atomic_store_n(&recycler.stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_int_equal(received.torn, 0);
  assert_true(received.again > 0);
  munmap(recycler.map, HEADER + CHUNK);
  close(fd);
  trace_follow_close(&file);
  trace_writer_free(writer);
}

/* A ring that wraps: chunk by chunk in the order of the file, and then from the beginning. */
static void follows_a_ring_that_wraps(void **state) {
  (void)state;
  enum { CHUNKS = 6, ROUNDS = 5 };
  struct trace_writer *writer = new_file(7, 1000);
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  u8 *now = calloc(1, HEADER + CHUNKS * CHUNK);
  memcpy(now, data, HEADER);
  struct tscope_file_header *header = (void *)now;
  header->chunks = CHUNKS;
  struct trace_follow file;
  struct received received = {0};
  put(now, HEADER + CHUNKS * CHUNK);
  open_file(&file);
  for (u32 g = 0; g < CHUNKS * ROUNDS; g++) {
    struct tscope_chunk_header *chunk = (void *)(now + HEADER + (g % CHUNKS) * CHUNK);
    *chunk = (struct tscope_chunk_header){.magic = TSCOPE_CHUNK_MAGIC,
                                          .retention = TSCOPE_RING,
                                          .clock = TSCOPE_CLOCK_TICKS,
                                          .header_bytes = sizeof(*chunk),
                                          .thread = 1};
    fill_again(chunk, g);
    chunk->generation = g / CHUNKS;
    header->lost[TSCOPE_LOSS_RING] = g / CHUNKS;
    put(now, HEADER + CHUNKS * CHUNK);
    for (u32 i = 0; i < 6; i++) /* as often as the pace of a job allows */
      assert_int_equal(trace_follow_look(&file, everything, check_stamps, &received), 0);
    assert_int_equal(received.newest, g);
  }
  assert_int_equal(received.torn, 0);
  assert_int_equal(received.again, CHUNKS * ROUNDS * ((CHUNK - 64) / 32));
  trace_follow_close(&file);
  free(now);
  trace_writer_free(writer);
}

static void a_cut_file_is_not_the_end(void **state) {
  (void)state;
  struct trace_writer *writer = lively_file();
  struct received received = {0}, truth;
  struct trace_follow file;
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  put(data, bytes);
  truth = read_whole(path);
  open_file(&file);
  assert_int_equal(look(&file, everything, &received), 0);
  assert_int_equal(truncate(path, HEADER + CHUNK + 100), 0);
  assert_int_equal(look(&file, everything, &received), 0);
  put_at(0, data, bytes);
  assert_int_equal(look(&file, everything, &received), 0);
  compare(&received, &truth);
  assert_int_equal(truncate(path, 100), 0);
  assert_true(look(&file, everything, &received) < 0);
  forget(&truth);
  forget(&received);
  trace_follow_close(&file);
  trace_writer_free(writer);
}

static void garbage_is_counted_but_not_delivered(void **state) {
  (void)state;
  struct trace_writer *writer = lively_file();
  struct received received = {0}, truth;
  struct trace_follow file;
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  data[HEADER + CHUNK] ^= 0xff; /* a chunk's magic */
  put(data, bytes);
  truth = read_whole(path);
  open_file(&file);
  for (u32 i = 0; i < 3; i++)
    assert_int_equal(look(&file, everything, &received), 0);
  assert_int_equal(file.damaged, 1);
  compare(&received, &truth);
  forget(&truth);
  forget(&received);
  trace_follow_close(&file);
  trace_writer_free(writer);
}

static u32 pid_seen(const struct live_run *run) {
  for (u32 i = 0; i < run->entries.n; i++)
    if (run->entries.at[i]->of_run && !run->entries.at[i]->left_out)
      return run->entries.at[i]->process->trace.file.header.pid;
  return 0;
}

static void another_file_in_its_place_is_another_process(void **state) {
  (void)state;
  struct trace_writer *first = new_file(7, 1000), *second = new_file(8, 2000);
  struct live_run run = {.directory = folder};
  char why[256];
  size_t bytes;
  const u8 *data = trace_writer_data(first, &bytes);
  unlink(path);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), -ENOENT);
  put(data, 10); /* not even a header yet */
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), -ENOENT);
  put(data, bytes);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  assert_int_equal(pid_seen(&run), 7);
  data = trace_writer_data(second, &bytes);
  put(data, bytes); /* in place: the same file, another header */
  live_run_poll(&run, why, sizeof(why));
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  assert_int_equal(pid_seen(&run), 8);
  data = trace_writer_data(first, &bytes);
  unlink(path);
  put(data, bytes); /* a new file of the same name */
  live_run_poll(&run, why, sizeof(why));
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), 0);
  assert_int_equal(pid_seen(&run), 7);
  unlink(path);
  assert_int_equal(live_run_poll(&run, why, sizeof(why)), -ENOENT);
  live_run_close(&run);
  trace_writer_free(first);
  trace_writer_free(second);
}

static int make_folder(void **state) {
  (void)state;
  scratch_make(folder);
  snprintf(path, sizeof(path), "%s/file.tscope", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  scratch_remove(folder);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grows_byte_by_byte),
      cmocka_unit_test(takes_what_is_committed),
      cmocka_unit_test(spans_come_again_when_they_end),
      cmocka_unit_test(never_shows_a_torn_record),
      cmocka_unit_test(follows_a_ring_that_wraps),
      cmocka_unit_test(a_cut_file_is_not_the_end),
      cmocka_unit_test(garbage_is_counted_but_not_delivered),
      cmocka_unit_test(another_file_in_its_place_is_another_process),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
