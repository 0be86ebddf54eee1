/* SPDX-License-Identifier: MIT
 *
 * Reading: everything committed is found and nothing else, and damage is reported.
 */
#include "model_support.h"

#include "base/arena.h"
#include "import/tscope/events/read_events.h"
#include "import/tscope/files/trace_dir.h"

/* A small file with up to two chunks of retained records, all of which the tests count. */
static struct trace_writer *small_file(u32 calls) {
  struct trace_writer *writer = new_rank(0, 1);
  write_comm(writer, 1, 77, 0, 1, TSCOPE_BACKEND_NCCL);
  for (u32 i = 0; i < calls; i++)
    write_call(writer, 1000 * i, TSCOPE_OP_ALLREDUCE, 1, i);
  return writer;
}

static int read_bytes(const u8 *data, size_t bytes, struct rank_events *events, char *why) {
  struct trace_file file;
  int result = trace_file_open_memory(&file, data, bytes, why, 256);
  if (result < 0)
    return result;
  rank_events_read(events, &file, NULL);
  trace_file_close(&file);
  return 0;
}

/* The number of calls whose last byte is before `cut`. */
static u32 calls_before(size_t cut, u32 calls) {
  size_t first =
      TSCOPE_HEADER_BYTES + sizeof(struct tscope_chunk_header) + sizeof(struct tscope_comm_record);
  size_t each = sizeof(struct tscope_collective_record);
  u32 whole = cut > first ? (u32)((cut - first) / each) : 0;
  return MIN(whole, calls);
}

static void test_cut_at_every_byte(void **state) {
  (void)state;
  enum { CALLS = 20 };
  struct trace_writer *writer = small_file(CALLS);
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  size_t end = TSCOPE_HEADER_BYTES + 64 + sizeof(struct tscope_comm_record) +
               CALLS * sizeof(struct tscope_collective_record);
  for (size_t cut = 0; cut <= end + 16; cut++) {
    struct rank_events events;
    char why[256] = "";
    u8 *copy = malloc(cut ? cut : 1); /* exactly this long: a sanitizer sees any read beyond it */
    memcpy(copy, data, cut);
    int result = read_bytes(copy, cut, &events, why);
    if (result < 0) {
      assert_true(cut < sizeof(struct tscope_file_header));
      assert_string_not_equal(why, "");
    } else {
      assert_int_equal(events.calls.n, calls_before(cut, CALLS));
      if (cut >= TSCOPE_HEADER_BYTES + 64 && events.calls.n < CALLS)
        assert_non_null(events.definitions->damage);
      rank_events_release(&events);
    }
    free(copy);
  }
  trace_writer_free(writer);
}

static void test_nothing_uncommitted_is_shown(void **state) {
  (void)state;
  struct trace_writer *writer = small_file(10);
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  struct tscope_chunk_header *chunk = (void *)(data + TSCOPE_HEADER_BYTES);
  chunk->committed -= (3ull << 32) + 3 * sizeof(struct tscope_collective_record);
  struct rank_events events;
  char why[256];
  assert_int_equal(read_bytes(data, bytes, &events, why), 0);
  assert_int_equal(events.calls.n, 7);
  assert_int_equal(events.definitions->records, 8);
  assert_null(events.definitions->damage);
  rank_events_release(&events);
  trace_writer_free(writer);
}

static void test_unknown_records_are_skipped(void **state) {
  (void)state;
  struct trace_writer *writer = small_file(3);
  memset((u8 *)trace_add(writer, retained, AT(5000), 0xee, 1, 48) + 8, 0xff, 40);
  /* a newer minor version may make known records longer */
  struct tscope_collective_record *longer = trace_add(
      writer, retained, AT(6000), TSCOPE_REC_COLLECTIVE, TSCOPE_OP_BROADCAST, sizeof(*longer) + 16);
  longer->comm = 1;
  longer->seq = 3;
  size_t bytes;
  const u8 *data = trace_writer_data(writer, &bytes);
  struct rank_events events;
  char why[256];
  assert_int_equal(read_bytes(data, bytes, &events, why), 0);
  assert_int_equal(events.calls.n, 4);
  assert_int_equal(events.calls.at[3].op, TSCOPE_OP_BROADCAST);
  assert_null(events.definitions->damage);
  rank_events_release(&events);
  trace_writer_free(writer);
}

static void test_texts_of_a_damaged_header_end(void **state) {
  (void)state;
  struct trace_writer *writer = small_file(3);
  struct tscope_file_header *header = trace_writer_header(writer);
  struct trace_file file;
  size_t bytes;
  char why[256];
  memset(header->exception, 'x', sizeof(header->exception));
  memset(header->last_line, 'x', sizeof(header->last_line));
  const u8 *data = trace_writer_data(writer, &bytes);
  assert_int_equal(trace_file_open_memory(&file, data, bytes, why, sizeof(why)), 0);
  assert_int_equal(strlen(file.header.exception), sizeof(header->exception) - 1);
  assert_int_equal(strlen(file.header.last_line), sizeof(header->last_line) - 1);
  trace_file_close(&file);
  trace_writer_free(writer);
}

static void test_damaged_headers_are_refused(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    u8 value;
    const char *word;
  } damages[] = {
      {0, 'T', "not a tscope trace"},
      {offsetof(struct tscope_file_header, version_major), 9, "format version 9"},
      {offsetof(struct tscope_file_header, byte_order_mark), 0xff, "byte order"},
      {offsetof(struct tscope_file_header, header_bytes), 1, "damaged header"},
      {offsetof(struct tscope_file_header, chunk_bytes), 3, "damaged header"},
      {offsetof(struct tscope_file_header, tick_shift), 77, "damaged header"},
      {offsetof(struct tscope_file_header, features), 1, "features"},
  };
  struct trace_writer *writer = small_file(3);
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  for (size_t i = 0; i < LENGTH_OF(damages); i++) {
    struct rank_events events;
    char why[256] = "";
    u8 before = data[damages[i].offset];
    data[damages[i].offset] = damages[i].value;
    assert_true(read_bytes(data, bytes, &events, why) < 0);
    if (!strstr(why, damages[i].word))
      fail_msg("\"%s\" says nothing of \"%s\"", why, damages[i].word);
    data[damages[i].offset] = before;
  }
  trace_writer_free(writer);
}

static void test_damaged_chunks_are_skipped_and_reported(void **state) {
  (void)state;
  struct trace_writer *writer = small_file(2000); /* two chunks */
  size_t bytes;
  u8 *data = (u8 *)(uintptr_t)trace_writer_data(writer, &bytes);
  assert_int_equal(bytes, TSCOPE_HEADER_BYTES + 2 * TSCOPE_CHUNK_BYTES);
  data[TSCOPE_HEADER_BYTES + TSCOPE_CHUNK_BYTES] ^= 0xff; /* the second one's magic */
  struct rank_events events;
  char why[256];
  assert_int_equal(read_bytes(data, bytes, &events, why), 0);
  assert_in_range(events.calls.n, 1000, 1999);
  assert_string_equal(events.definitions->damage, "1 damaged stretches were skipped");
  rank_events_release(&events);
  trace_writer_free(writer);
}

static void test_garbage_beside_good_files_is_named(void **state) {
  struct fixture *fixture = *state;
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  char folder[128];
  options.steps = 5;
  options.directory = fixture->directory;
  assert_int_equal(tracegen_write(&options, &truth), 0);
  snprintf(folder, sizeof(folder), "%s/synthetic", fixture->directory);
  scratch_text(folder, "garbage.tscope", "this is no trace");
  scratch_text(folder, "empty.tscope", "");
  scratch_text(folder, "notes.txt", "nobody's business");
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_ranks, 4);
  assert_int_equal(model->n_notes, 2);
  assert_non_null(strstr(model->notes[0], "empty.tscope is empty"));
  assert_non_null(strstr(model->notes[1], "garbage.tscope is not a tscope trace"));
  model_free(model);
  tracegen_truth_free(&truth);
}

static void test_runs_are_distinguished(void **state) {
  struct fixture *fixture = *state;
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  static const char *const names[] = {"monday-1", "monday-2", "sunday"};
  static const u64 starts[] = {2000, 3000, 1000};
  options.directory = fixture->directory;
  options.steps = 3;
  for (u32 i = 0; i < 3; i++) {
    options.run = names[i];
    options.start_realtime_ns = 1700000000000000000ull + starts[i] * 1000000000;
    assert_int_equal(tracegen_write(&options, &truth), 0);
    tracegen_truth_free(&truth);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_string_equal(model->run, "monday-2");
  model_free(model);
  model = load(fixture->directory, &(struct model_options){.run = "sun"});
  assert_string_equal(model->run, "sunday");
  model_free(model);
  char why[512];
  assert_true(model_load(fixture->directory, &(struct model_options){.run = "monday"}, &model, why,
                         sizeof(why)) < 0);
  assert_non_null(strstr(why, "several runs"));
  assert_true(model_load(fixture->directory, &(struct model_options){.run = "friday"}, &model, why,
                         sizeof(why)) < 0);
  assert_non_null(strstr(why, "no run is called \"friday\""));
}

static void test_one_file_or_one_run_folder_is_enough(void **state) {
  struct fixture *fixture = *state;
  struct trace_writer *writer = small_file(4);
  save_rank(fixture, writer);
  char path[128];
  snprintf(path, sizeof(path), "%s/host-100-1.tscope", fixture->directory);
  struct model *model = load(path, NULL);
  assert_int_equal(model->n_ranks, 1);
  assert_int_equal(model->n_arrivals, 4);
  assert_true(model->clock_aligned);
  model_free(model);
  char why[512];
  assert_true(model_load("/nonexistent/tscope", NULL, &model, why, sizeof(why)) < 0);
  assert_non_null(strstr(why, "/nonexistent/tscope"));
}

/* Only the last restart is used: no rank of the first start is mixed in. The first can be asked
 * for.
 */
static void test_restart_under_the_same_identity(void **state) {
  struct fixture *fixture = *state;
  for (u32 attempt = 0; attempt < 2; attempt++)
    for (u32 rank = 0; rank < (attempt == 0 ? 4 : 2); rank++) {
      struct trace_writer *writer = new_rank(rank, attempt == 0 ? 4 : 2);
      struct tscope_file_header *header = trace_writer_header(writer);
      header->pid = 100 * (attempt + 1) + rank;
      header->start_monotonic_ns += attempt * 60000000000ull + rank * 1000;
      header->start_realtime_ns += attempt * 60000000000ull + rank * 1000;
      write_comm(writer, 1, 5, rank, header->world_size, TSCOPE_BACKEND_NCCL);
      write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
      save_rank(fixture, writer);
    }
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_ranks, 2);
  assert_int_equal(model->ranks[0].pid, 200);
  assert_int_equal(model->ranks[1].pid, 201);
  assert_int_equal(model->world_size, 2);
  assert_int_equal(model->attempt, 2);
  assert_int_equal(model->n_attempts, 2);
  assert_int_equal(model->attempts[0].world_size, 4);
  assert_int_equal(model->attempts[0].processes, 4);
  assert_int_equal(model->attempts[1].world_size, 2);
  model_free(model);
  model = load(fixture->directory, &(struct model_options){.attempt = 1});
  assert_int_equal(model->n_ranks, 4);
  assert_int_equal(model->ranks[3].pid, 103);
  model_free(model);
}

static void test_rank_from_the_world_communicator(void **state) {
  struct fixture *fixture = *state;
  for (u32 rank = 0; rank < 3; rank++) {
    struct trace_writer *writer = new_rank(TSCOPE_UNKNOWN_RANK, 0);
    trace_writer_header(writer)->pid = 300 - rank; /* order of files is not order of ranks */
    write_comm(writer, 1, 5, rank, 3, TSCOPE_BACKEND_NCCL);
    write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
    save_rank(fixture, writer);
  }
  struct model *model = load(fixture->directory, NULL);
  assert_int_equal(model->n_ranks, 3);
  for (u32 rank = 0; rank < 3; rank++) {
    assert_int_equal(model->ranks[rank].rank, rank);
    assert_int_equal(model->ranks[rank].pid, 300 - rank);
  }
  assert_int_equal(model->world_size, 3);
  assert_int_equal(model->n_notes, 0);
  model_free(model);
}

/* With Lightning the first rank has one run identity, and the ranks that it starts have another. */
static void write_strays(struct fixture *fixture, const char *const names[3], const u32 ranks[3],
                         const u64 starts[3], bool killed) {
  for (u32 i = 0; i < 3; i++) {
    struct trace_writer *writer = new_rank(TSCOPE_UNKNOWN_RANK, 0);
    struct tscope_file_header *header = trace_writer_header(writer);
    header->pid = 100 + i;
    header->start_realtime_ns = starts[i] * 1000000000;
    header->closed_realtime_ns = killed ? 0 : (starts[i] + 10) * 1000000000;
    snprintf(header->run, sizeof(header->run), "%s", names[i]);
    write_comm(writer, 1, 5, ranks[i], 3, TSCOPE_BACKEND_GLOO);
    write_call(writer, 10, TSCOPE_OP_ALLREDUCE, 1, 0);
    save_rank(fixture, writer);
  }
}

static u32 ranks_with_strays(void **state, const char *const names[3], const u32 ranks[3],
                             const u64 starts[3], bool killed) {
  write_strays(*state, names, ranks, starts, killed);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  u32 n = model->n_ranks;
  assert_int_equal(model->n_notes, n > 1 ? n - 1 : 0);
  model_free(model);
  return n;
}

static void test_ranks_under_several_runs(void **state) {
  assert_int_equal(ranks_with_strays(state, (const char *const[]){"a", "b", "c"},
                                     (const u32[]){0, 1, 2}, (const u64[]){100, 101, 105}, false),
                   3);
}

/* The same job, run again later, or two similar jobs at the same time. */
static void test_other_runs_of_the_same_kind_stay_apart(void **state) {
  assert_int_equal(ranks_with_strays(state, (const char *const[]){"a", "b", "c"},
                                     (const u32[]){2, 0, 0}, (const u64[]){300, 100, 200}, false),
                   1);
}

/* A killed run never closed its trace, but it is over too. */
static void test_killed_runs_of_the_same_kind_stay_apart(void **state) {
  assert_int_equal(ranks_with_strays(state, (const char *const[]){"a", "b", "c"},
                                     (const u32[]){2, 0, 1}, (const u64[]){3000, 1000, 2000}, true),
                   1);
}

static void test_ticks_follow_the_anchors(void **state) {
  (void)state;
  struct tscope_file_header header = {.tick_source = TSCOPE_TICK_TSC,
                                      .tick_shift = 3,
                                      .tick_hz = 2000000000,
                                      .start_monotonic_ns = 1000000000};
  /* the true rate is 0.1 % off the header's estimate, and one anchor is nonsense */
  const struct tick_anchor anchors[] = {{8000000000, 1000000000},
                                        {8000000000 + 2002000000, 2000000000},
                                        {8000000000 + 3003000000, 77000000000},
                                        {8000000000 + 4004000000, 3000000000}};
  struct arena arena = {0};
  struct tick_map map;
  tick_map_build(&map, &header, anchors, 4, &arena);
  assert_int_equal(map.rejected, 1);
  for (u32 ms = 0; ms < 3000; ms += 7) {
    u64 ticks = 8000000000 + (u64)ms * 2002000;
    assert_in_range(tick_map_ns(&map, ticks), 1000000000 + ms * 1000000ull - 5,
                    1000000000 + ms * 1000000ull + 5);
  }
  arena_release(&arena);
}

/* The writer measures the rate during half a millisecond; on a busy machine it may be wrong. */
static void test_anchors_outvote_the_header(void **state) {
  (void)state;
  struct tscope_file_header header = {
      .tick_source = TSCOPE_TICK_TSC, .tick_hz = 9000000000, .start_monotonic_ns = 1000000000};
  struct tick_anchor anchors[5];
  for (u64 i = 0; i < 5; i++)
    anchors[i] = (struct tick_anchor){8000000000 + i * 2000000000, 1000000000 + i * 1000000000};
  struct arena arena = {0};
  struct tick_map map;
  tick_map_build(&map, &header, anchors, 5, &arena);
  assert_int_equal(map.rejected, 0);
  assert_int_equal(tick_map_ns(&map, 8000000000 + 5000000000), 3500000000);
  arena_release(&arena);
}

/* Each may be millions, and they are looked at on a few ranks only. */
static void test_meetings_are_kept_of_64_ranks(void **state) {
  (void)state;
  const u32 ranks = 10000;
  u32 kept = 0;
  for (u32 rank = 0; rank < ranks; rank++) {
    struct trace_writer *writer = new_rank(rank, ranks);
    struct tscope_memcpy_record *call =
        trace_add(writer, in_ring, AT(0), TSCOPE_REC_MEMCPY, 0, sizeof(*call));
    call->kind = TSCOPE_MEMCPY_D2H;
    size_t bytes;
    const u8 *data = trace_writer_data(writer, &bytes);
    struct rank_events events;
    char why[256];
    assert_int_equal(read_bytes(data, bytes, &events, why), 0);
    assert_true(rank > 0 || events.meetings.n == 1);
    kept += events.meetings.n;
    rank_events_release(&events);
    trace_writer_free(writer);
  }
  assert_in_range(kept, MEETING_RANKS / 2, MEETING_RANKS);
}

/* A duration of 2^32 units or more is in the word after the record. */
static void test_long_meetings_are_whole(void **state) {
  (void)state;
  const u8 types[] = {TSCOPE_REC_MEMCPY, TSCOPE_REC_SYNC};
  const u64 dur = 6000000000;
  for (u32 i = 0; i < 2; i++) {
    struct trace_writer *writer = new_rank(0, 2);
    size_t size = types[i] == TSCOPE_REC_MEMCPY ? sizeof(struct tscope_memcpy_record)
                                                : sizeof(struct tscope_sync_record);
    u8 *record = trace_add(writer, in_ring, AT(0), types[i], 0, size + sizeof(dur));
    *(u32 *)(void *)(record + sizeof(struct tscope_record)) = TSCOPE_DUR_LONG;
    memcpy(record + size, &dur, sizeof(dur));
    if (types[i] == TSCOPE_REC_MEMCPY)
      ((struct tscope_memcpy_record *)(void *)record)->kind = TSCOPE_MEMCPY_D2H;
    size_t bytes;
    const u8 *data = trace_writer_data(writer, &bytes);
    struct rank_events events;
    char why[256];
    assert_int_equal(read_bytes(data, bytes, &events, why), 0);
    assert_int_equal(events.meetings.n, 1);
    assert_int_equal(events.meetings.at[0].end - events.meetings.at[0].start, dur);
    rank_events_release(&events);
    trace_writer_free(writer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_anchors_outvote_the_header),
      cmocka_unit_test(test_cut_at_every_byte),
      cmocka_unit_test(test_nothing_uncommitted_is_shown),
      cmocka_unit_test(test_unknown_records_are_skipped),
      cmocka_unit_test(test_damaged_headers_are_refused),
      cmocka_unit_test(test_texts_of_a_damaged_header_end),
      cmocka_unit_test(test_damaged_chunks_are_skipped_and_reported),
      cmocka_unit_test_setup_teardown(test_garbage_beside_good_files_is_named, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_runs_are_distinguished, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(test_one_file_or_one_run_folder_is_enough, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_restart_under_the_same_identity, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_rank_from_the_world_communicator, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_ranks_under_several_runs, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(test_killed_runs_of_the_same_kind_stay_apart, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(test_other_runs_of_the_same_kind_stay_apart, make_fixture,
                                      drop_fixture),
      cmocka_unit_test(test_ticks_follow_the_anchors),
      cmocka_unit_test(test_meetings_are_kept_of_64_ranks),
      cmocka_unit_test(test_long_meetings_are_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
