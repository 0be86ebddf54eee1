/* SPDX-License-Identifier: MIT
 *
 * Which call of a running job a run on its GPU belongs to, whatever order a look reads them in; and
 * what its GPU does besides.
 */
#include "live/live_process.h"
#include "model_support.h"

enum { COMM = 3, STREAM = 5 };

static struct trace_place thread(u32 number) {
  return (struct trace_place){number, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS};
}

/* A process with one communicator. */
static struct trace_writer *new_file(void) {
  struct trace_writer *writer = new_rank(0, 2);
  write_comm(writer, COMM, 1, 0, 2, TSCOPE_BACKEND_NCCL);
  return writer;
}

static void add_call(struct trace_writer *writer, u32 by, u64 at, u32 seq, u16 stream) {
  struct tscope_collective_record *call =
      trace_add(writer, thread(by), at, TSCOPE_REC_COLLECTIVE, TSCOPE_OP_ALLREDUCE, sizeof(*call));
  call->dur = 10;
  call->comm = COMM;
  call->seq = seq;
  call->stream = stream;
}

/* `seq`: TSCOPE_UNKNOWN for a run that does not say what it is of. */
static void add_run(struct trace_writer *writer, u64 at, u32 seq, u16 stream) {
  struct tscope_collective_run_record *run =
      trace_add(writer, thread(2), at, TSCOPE_REC_COLLECTIVE_RUN, stream, sizeof(*run));
  run->dur = 100;
  run->comm = seq == TSCOPE_UNKNOWN ? TSCOPE_UNKNOWN : COMM;
  run->seq = seq;
}

/* One look at what has been written so far; the first opens the file. */
static void look(const struct fixture *fixture, struct live_process *process,
                 const struct trace_writer *writer, bool first) {
  char path[128], why[256];
  snprintf(path, sizeof(path), "%s/file.tscope", fixture->directory);
  assert_int_equal(trace_writer_save(writer, path, SIZE_MAX), 0);
  if (first)
    assert_int_equal(live_process_open(process, path, why, sizeof(why)), 0);
  assert_int_equal(live_process_poll(process, (struct ring_share){.all = true}), 0);
}

/* How long after a call its run began. */
static i64 begins_after(struct live_process *process, u32 seq) {
  u32 at = live_find_call(&process->called, 0, seq, false);
  assert_int_not_equal(at, INDEX_NONE);
  const struct rank_call *call = &process->called.calls.at[at];
  assert_int_not_equal(call->run, INDEX_NONE);
  return process->called.runs.at[call->run].start - call->start;
}

/* A look reads the chunk of the thread that calls before that of the thread that runs: in between,
 * a call was made and has run. */
static void a_run_may_come_before_its_call(void **state) {
  struct live_process process;
  struct trace_writer *writer = new_file();
  add_run(writer, AT(7000), 41, TSCOPE_NO_STREAM);
  look(*state, &process, writer, true);
  assert_int_equal(process.comms.at[0].newest, INDEX_NONE); /* nothing is said of it yet */
  add_call(writer, 0, AT(6000), 41, TSCOPE_NO_STREAM);
  look(*state, &process, writer, false);
  assert_int_equal(process.comms.at[0].newest, 41);
  assert_int_equal(begins_after(&process, 41), 1000);
  live_process_close(&process);
  trace_writer_free(writer);
}

/* PyTorch calls collectives of one stream from the main thread and from that of the backward pass.
 * A look reads first what one of them called, then what the other called in between. */
static void a_stream_runs_the_calls_of_two_threads_in_order(void **state) {
  struct live_process process;
  struct trace_writer *writer = new_file();
  trace_add(writer, thread(0), AT(2100), TSCOPE_REC_GPU_CLOCK, TSCOPE_GPU_CLOCK_CUPTI,
            sizeof(struct tscope_gpu_clock_record));
  add_call(writer, 0, AT(3000), 0, STREAM);
  add_call(writer, 0, AT(3200), 2, STREAM);
  add_call(writer, 1, AT(3100), 1, STREAM);
  for (u32 i = 0; i < 3; i++)
    add_run(writer, AT(5000 + 1000 * i), TSCOPE_UNKNOWN, STREAM);
  look(*state, &process, writer, true);
  for (u32 seq = 0; seq < 3; seq++)
    assert_int_equal(begins_after(&process, seq), 2000 + 900 * seq);
  live_process_close(&process);
  trace_writer_free(writer);
}

/* In vLLM's kernel ranks wait for one another, as in NCCL's. */
static void a_kernel_that_communicates_is_no_work(void **state) {
  struct live_process process;
  i64 until;
  struct trace_writer *writer = new_file();
  u32 names[] = {trace_string(writer, "gemm"),
                 trace_string(writer, "void vllm::cross_device_reduce_1stage<float, 2>(int)")};
  for (u32 i = 0; i < 8; i++) {
    struct tscope_gpu_kernel_record *kernel =
        trace_add(writer, on_gpu, AT(1000 + 100 * i), TSCOPE_REC_GPU_KERNEL, 0, sizeof(*kernel));
    kernel->dur = i % 4 == 0 ? 100 : 50;
    kernel->name = names[i % 4 != 0 && i < 7];
  }
  look(*state, &process, writer, true);
  assert_near(live_gpu_share(&process, &until), (100 + 100 + 50) / 750.0, 1e-6);
  live_process_close(&process);
  trace_writer_free(writer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_run_may_come_before_its_call, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(a_stream_runs_the_calls_of_two_threads_in_order, make_fixture,
                                      drop_fixture),
      cmocka_unit_test_setup_teardown(a_kernel_that_communicates_is_no_work, make_fixture,
                                      drop_fixture)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
