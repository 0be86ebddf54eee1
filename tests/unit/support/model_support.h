/* SPDX-License-Identifier: MIT
 *
 * Shared by the tests of the model: a temporary directory, and runs whose true values are known.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "figures.h"
#include "import/tscope/load_traces.h"
#include "model/rank_timeline.h"
#include "scratch.h"
#include "trace_writer.h"
#include "tracegen.h"

struct fixture {
  char directory[64];
};

static inline int make_fixture(void **state) {
  struct fixture *fixture = calloc(1, sizeof(*fixture));
  snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/tscope-model-XXXXXX");
  scratch_make(fixture->directory);
  *state = fixture;
  return 0;
}

static inline int drop_fixture(void **state) {
  struct fixture *fixture = *state;
  scratch_remove(fixture->directory);
  free(fixture);
  return 0;
}

static inline struct model *load(const char *path, const struct model_options *options) {
  char why[512] = "";
  struct model *model = NULL;
  int result = model_load(path, options, &model, why, sizeof(why));
  if (result != 0)
    fail_msg("model_load: %d %s", result, why);
  return model;
}

/* Writes the run into the fixture's directory and loads it. */
static inline struct model *generate(struct fixture *fixture, struct tracegen_options *options,
                                     struct tracegen_truth *truth) {
  options->directory = fixture->directory;
  assert_int_equal(tracegen_write(options, truth), 0);
  return load(fixture->directory, NULL);
}

/* The file of one process of a run written by hand, on one host; a tick is a nanosecond. */
static inline struct trace_writer *new_rank(u32 rank, u32 world_size) {
  struct tscope_file_header facts = {.tick_source = TSCOPE_TICK_MONOTONIC,
                                     .tick_hz = 1000000000,
                                     .pid = 100 + rank,
                                     .rank = rank,
                                     .world_size = world_size,
                                     .local_rank = rank,
                                     .start_ticks = 1000000000,
                                     .start_monotonic_ns = 1000000000,
                                     .start_realtime_ns = 1700000000000000000ull,
                                     .closed_realtime_ns = 1700000001000000000ull};
  snprintf(facts.host, sizeof(facts.host), "host");
  snprintf(facts.run, sizeof(facts.run), "by-hand");
  return trace_writer_new(&facts);
}

static inline void save_rank(const struct fixture *fixture, struct trace_writer *writer) {
  char path[128];
  snprintf(path, sizeof(path), "%s/host-%u-1.tscope", fixture->directory,
           trace_writer_header(writer)->pid);
  assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
  trace_writer_free(writer);
}

static const struct trace_place retained = {0, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};
static const struct trace_place in_ring = {0, TSCOPE_RING, TSCOPE_CLOCK_TICKS};
static const struct trace_place gpu_retained = {1, TSCOPE_RETAINED, TSCOPE_CLOCK_MONOTONIC};
static const struct trace_place on_gpu = {1, TSCOPE_RING, TSCOPE_CLOCK_MONOTONIC};

#define AT(ns) (1000000000ull + (ns)) /* times count from the start of the process */

static inline void write_comm(struct trace_writer *writer, u32 comm, u64 identity, u32 rank,
                              u32 size, enum tscope_backend backend) {
  struct tscope_comm_record *record =
      trace_add(writer, retained, AT(0), TSCOPE_REC_COMM, (u16)backend, sizeof(*record));
  record->identity = identity;
  record->comm = comm;
  record->rank = rank;
  record->size = size;
}

static inline struct tscope_collective_record *write_call(struct trace_writer *writer, u64 at,
                                                          enum tscope_op op, u32 comm, u32 seq) {
  struct tscope_collective_record *record =
      trace_add(writer, retained, AT(at), TSCOPE_REC_COLLECTIVE, (u16)op, sizeof(*record));
  record->dur = 1000;
  record->count = 256;
  record->comm = comm;
  record->seq = seq;
  record->peer = -1;
  record->stream = 1;
  record->dtype = TSCOPE_DTYPE_F32;
  return record;
}

static inline struct tscope_collective_run_record *write_run(struct trace_writer *writer, u64 at,
                                                             u64 dur, const char *name) {
  u32 string = trace_string(writer, name);
  struct tscope_collective_run_record *record =
      trace_add(writer, gpu_retained, AT(at), TSCOPE_REC_COLLECTIVE_RUN, 1, sizeof(*record));
  record->dur = dur;
  record->comm = record->seq = TSCOPE_UNKNOWN;
  record->name = string;
  return record;
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_fixture, drop_fixture)

static inline u32 count_kind(const struct timeline *timeline, u8 kind) {
  u32 n = 0;
  for (u32 i = 0; i < timeline->n_spans; i++)
    n += timeline->spans[i].kind == kind;
  return n;
}
