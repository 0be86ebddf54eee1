/* SPDX-License-Identifier: MIT
 *
 * CUDA graphs: captured calls run nothing and are recorded as part of their graph. Each replay is
 * one launch and gives its collectives new sequence numbers. Captures are not disturbed.
 */
#include "driver/driver_types.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "../../standins/standin.h"
#include "cuda/graphs/cuda_graphs.h"
#include "cuda/graphs/graph_nodes.h"
#include "hooks_trace.h"

void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);

static char a_kernel;
static cudaStream_t stream, side;
static ncclComm_t comm;
static float *data;

static int set_up(void **state) {
  ncclUniqueId id;
  __cudaRegisterFunction(NULL, &a_kernel, NULL, "_Z8a_kernelv", -1, NULL, NULL, NULL, NULL, NULL);
  return trace_set_up(state) || cudaStreamCreate(&stream) || cudaStreamCreate(&side) ||
         ncclGetUniqueId(&id) || ncclCommInitRank(&comm, 1, id, 0) ||
         cudaMalloc((void **)&data, 4096);
}

static void launch_on(cudaStream_t on) {
  assert_int_equal(cudaLaunchKernel(&a_kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, on),
                   cudaSuccess);
}

static void all_reduce(void) {
  assert_int_equal(ncclAllReduce(data, data, 16, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
}

static cudaGraph_t capture(void (*work)(void)) {
  cudaGraph_t graph;
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  work();
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable;
  assert_int_equal(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  return executable;
}

static void two_kernels_a_copy_and_a_fill(void) {
  launch_on(stream);
  assert_int_equal(cudaMemcpyAsync(data, data + 512, 64, cudaMemcpyDeviceToDevice, stream), 0);
  assert_int_equal(cudaMemsetAsync(data, 0, 64, stream), cudaSuccess);
  launch_on(stream);
}

static void a_capture_is_no_launch_but_a_graph(void **state) {
  (void)state;
  launch_on(stream);
  u32 launches = count(TSCOPE_REC_LAUNCH), copies = count(TSCOPE_REC_MEMCPY);
  u32 graphs = count(TSCOPE_REC_GRAPH), replays = count(TSCOPE_REC_GRAPH_REPLAY);
  u32 graph_launches = count(TSCOPE_REC_GRAPH_LAUNCH), captures = count(TSCOPE_REC_CAPTURE);
  u64 before = tscope_ticks();
  cudaGraph_t graph = capture(two_kernels_a_copy_and_a_fill);
  u64 took = LAST(CAPTURE, capture).dur;
  assert_int_equal(count(TSCOPE_REC_CAPTURE), captures + 1);
  assert_true(took > 0 && took <= tscope_ticks() - before);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches);
  assert_int_equal(count(TSCOPE_REC_MEMCPY), copies);
  assert_int_equal(count(TSCOPE_REC_GRAPH), graphs);
  cudaGraphExec_t executable = instantiate(graph);
  struct tscope_graph_record made = LAST(GRAPH, graph);
  assert_int_equal(made.nodes, 4);
  assert_int_equal(made.kernels, 2);
  assert_int_equal(made.memcpys, 1);
  assert_int_equal(made.memsets, 1);
  assert_int_equal(made.collectives, 0);
  assert_int_not_equal(made.captured, 0);
  for (u32 i = 1; i <= 3; i++) {
    assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
    assert_int_equal(count(TSCOPE_REC_GRAPH_LAUNCH), graph_launches + i);
    assert_int_equal(LAST(GRAPH_LAUNCH, graph_launch).graph, made.graph);
  }
  assert_int_equal(count(TSCOPE_REC_GRAPH_REPLAY), replays);
  launch_on(stream);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 1);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

static void two_collectives(void) {
  all_reduce();
  launch_on(stream);
  all_reduce();
}

static void one_collective(void) {
  all_reduce();
}

/* Invalid handles, passed to every function that ends a graph or looks one up. The job passes only
 * NULL, because CUDA dereferences its arguments; the others are passed directly to the functions
 * that the hooks call. A graph made before keeps its place in the table, so that a later one does
 * not get it. */
static void invalid_handles_end_no_graph(void **state) {
  (void)state;
  static const u64 never_seen[] = {0, UINT64_MAX, 1, 0x7fff12345678};
  const struct graph_content *content;
  cudaGraph_t graph = capture(two_collectives);
  assert_int_not_equal(cudaGraphDestroy(NULL), cudaSuccess);
  assert_int_not_equal(cudaGraphExecDestroy(NULL), cudaSuccess);
  assert_int_not_equal(cudaGraphLaunch(NULL, stream), cudaSuccess);
  for (size_t i = 0; i < LENGTH_OF(never_seen); i++) {
    void *handle = (void *)(uintptr_t)never_seen[i];
    graph_destroyed(handle);
    graph_executable_destroyed(handle);
    graph_destroyed(handle);
    graph_cloned(handle, handle);
    assert_int_equal(graph_executable(handle, &content), 0);
    assert_null(content);
    stream_remove(handle);
  }
  cudaGraph_t other = capture(one_collective);
  cudaGraphExec_t executable = instantiate(graph);
  assert_int_equal(LAST(GRAPH, graph).collectives, 2);
  cudaGraphExec_t other_executable = instantiate(other);
  assert_int_equal(LAST(GRAPH, graph).collectives, 1);
  u32 replays = count(TSCOPE_REC_GRAPH_REPLAY);
  assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
  assert_int_equal(count(TSCOPE_REC_GRAPH_REPLAY), replays + 1);
  cudaGraphExecDestroy(other_executable);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(other);
  cudaGraphDestroy(graph);
}

static void fork_and_join(void) {
  cudaEvent_t forked, joined;
  cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
  launch_on(stream);
  assert_int_equal(cudaEventRecord(forked, stream), cudaSuccess);
  assert_int_equal(cudaStreamWaitEvent(side, forked, 0), cudaSuccess);
  launch_on(side);
  assert_int_equal(cudaEventRecord(joined, side), cudaSuccess);
  assert_int_equal(cudaStreamWaitEvent(stream, joined, 0), cudaSuccess);
  cudaEventDestroy(forked);
  cudaEventDestroy(joined);
}

static void streams_that_join_are_captured_too(void **state) {
  (void)state;
  u32 launches = count(TSCOPE_REC_LAUNCH), marks = count(TSCOPE_REC_EVENT_RECORD);
  cudaGraph_t graph = capture(fork_and_join);
  cudaGraphExec_t executable = instantiate(graph);
  assert_int_equal(LAST(GRAPH, graph).kernels, 2);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches);
  assert_int_equal(count(TSCOPE_REC_EVENT_RECORD), marks);
  launch_on(side);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 1);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

static void *launch_elsewhere(void *unused) {
  (void)unused;
  for (int i = 0; i < 50; i++)
    launch_on(side);
  return NULL;
}

static void capture_while_another_thread_launches(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, launch_elsewhere, NULL);
  for (int i = 0; i < 50; i++)
    launch_on(stream);
  pthread_join(thread, NULL);
}

static void other_streams_are_recorded_during_a_capture(void **state) {
  (void)state;
  u32 launches = count(TSCOPE_REC_LAUNCH);
  cudaGraph_t graph = capture(capture_while_another_thread_launches);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 50);
  cudaGraphExec_t executable = instantiate(graph);
  assert_int_equal(LAST(GRAPH, graph).kernels, 50);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/* The sequence numbers per communicator after the last GRAPH_REPLAY record. */
static struct tscope_graph_comm replayed(u32 *graph, u32 *comms) {
  struct trace trace = trace_read();
  const struct tscope_graph_replay_record *replay = trace_last(&trace, TSCOPE_REC_GRAPH_REPLAY);
  assert_non_null(replay);
  assert_int_equal(replay->header.words * 8, sizeof(*replay) + 16 * replay->comms);
  assert_true(replay->dur != TSCOPE_DUR_PENDING);
  struct tscope_graph_comm first;
  memcpy(&first, replay + 1, sizeof(first));
  *graph = replay->graph;
  *comms = replay->comms;
  trace_close(&trace);
  return first;
}

static void replayed_collectives_have_their_own_numbers(void **state) {
  (void)state;
  all_reduce();
  struct tscope_collective_record before = LAST(COLLECTIVE, collective);
  u32 calls = count(TSCOPE_REC_COLLECTIVE), captured = count(TSCOPE_REC_GRAPH_COLLECTIVE);
  cudaGraph_t graph = capture(two_collectives);
  assert_int_equal(count(TSCOPE_REC_COLLECTIVE), calls);
  assert_int_equal(count(TSCOPE_REC_GRAPH_COLLECTIVE), captured + 2);
  cudaGraphExec_t executable = instantiate(graph);
  struct tscope_graph_record made = LAST(GRAPH, graph);
  struct tscope_graph_collective_record second = LAST(GRAPH_COLLECTIVE, graph_collective);
  assert_int_equal(made.collectives, 2);
  assert_int_equal(second.captured, made.captured);
  assert_int_equal(second.index, 1);
  assert_int_equal(second.comm, before.comm);
  assert_int_equal(second.header.tag, TSCOPE_OP_ALLREDUCE);
  assert_int_equal(second.bytes, 64);
  for (u32 i = 0; i < 3; i++) {
    u32 number, comms;
    assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
    struct tscope_graph_comm first = replayed(&number, &comms);
    assert_int_equal(number, made.graph);
    assert_int_equal(comms, 1);
    assert_int_equal(first.comm, before.comm);
    assert_int_equal(first.first_collective, before.seq + 1 + 2 * i);
  }
  all_reduce();
  assert_int_equal(LAST(COLLECTIVE, collective).seq, before.seq + 7);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

static void one_kernel(void) {
  launch_on(stream);
}

static void an_updated_executable_is_another_graph(void **state) {
  (void)state;
  cudaGraph_t small = capture(one_kernel), large = capture(two_kernels_a_copy_and_a_fill), clone;
  cudaGraphExec_t executable = instantiate(small);
  struct tscope_graph_record first = LAST(GRAPH, graph);
  assert_int_equal(cudaGraphClone(&clone, large), cudaSuccess);
  cudaGraphDestroy(large);
  cudaGraphExecUpdateResultInfo result;
  assert_int_equal(cudaGraphExecUpdate(executable, clone, &result), cudaSuccess);
  struct tscope_graph_record second = LAST(GRAPH, graph);
  assert_int_not_equal(second.graph, first.graph);
  assert_int_equal(second.kernels, 2);
  assert_int_not_equal(second.captured, 0);
  cudaGraphLaunch(executable, stream);
  assert_int_equal(LAST(GRAPH_LAUNCH, graph_launch).graph, second.graph);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(clone);
  cudaGraphDestroy(small);
}

/* The way a framework captures that has the runtime linked into it. */
static void a_capture_through_the_driver_is_one_too(void **state) {
  (void)state;
  CUmodule module;
  CUfunction function;
  CUgraph graph;
  CUgraphExec executable;
  cuModuleLoadData(&module, "");
  cuModuleGetFunction(&function, module, "triton_poi_fused_add_0");
  u32 launches = count(TSCOPE_REC_LAUNCH), replays = count(TSCOPE_REC_GRAPH_LAUNCH);
  assert_int_equal(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  for (int i = 0; i < 5; i++)
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
  assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  assert_int_equal(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches);
  assert_int_equal(LAST(GRAPH, graph).kernels, 5);
  assert_int_equal(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_GRAPH_LAUNCH), replays + 1);
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
}

static cudaGraphExec_t inner;

static void a_kernel_and_the_inner_graph_twice(void) {
  launch_on(stream);
  all_reduce();
  assert_int_equal(cudaGraphLaunch(inner, stream), cudaSuccess);
  assert_int_equal(cudaGraphLaunch(inner, stream), cudaSuccess);
}

/* The way a library's own graph gets into the graph of a program. */
static void a_graph_launched_in_a_capture_is_part_of_the_graph(void **state) {
  (void)state;
  all_reduce();
  u32 seq = LAST(COLLECTIVE, collective).seq, number, comms;
  cudaGraph_t small = capture(two_collectives), large;
  inner = instantiate(small);
  struct tscope_graph_record held = LAST(GRAPH, graph);
  u32 launches = count(TSCOPE_REC_GRAPH_LAUNCH), replays = count(TSCOPE_REC_GRAPH_REPLAY);
  large = capture(a_kernel_and_the_inner_graph_twice);
  assert_int_equal(count(TSCOPE_REC_GRAPH_LAUNCH), launches);
  assert_int_equal(count(TSCOPE_REC_GRAPH_REPLAY), replays);
  assert_int_equal(count(TSCOPE_REC_GRAPH_CHILD), 2);
  cudaGraphExec_t outer = instantiate(large);
  struct tscope_graph_record made = LAST(GRAPH, graph);
  struct tscope_graph_child_record child = LAST(GRAPH_CHILD, graph_child);
  assert_int_equal(held.kernels, 3);
  assert_int_equal(made.kernels, 2 + 2 * held.kernels);
  assert_int_equal(made.nodes, made.kernels);
  assert_int_equal(made.collectives, 5);
  assert_int_equal(child.captured, made.captured);
  assert_int_equal(child.child, held.captured);
  assert_int_equal(child.comms, 1);
  cudaGraphLaunch(outer, stream);
  assert_int_equal(replayed(&number, &comms).first_collective, seq + 1);
  assert_int_equal(number, made.graph);
  all_reduce();
  assert_int_equal(LAST(COLLECTIVE, collective).seq, seq + 6);
  cudaGraphExecDestroy(outer);
  cudaGraphExecDestroy(inner);
  cudaGraphDestroy(large);
  cudaGraphDestroy(small);
}

static void a_child_added_by_hand_counts_with_what_it_holds(void **state) {
  (void)state;
  cudaGraph_t small = capture(two_kernels_a_copy_and_a_fill), reduced = capture(two_collectives);
  CUgraph graph, nested;
  CUgraphNode node, after;
  CUgraphExec executable;
  CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = reduced}};
  assert_int_equal(cuGraphCreate(&nested, 0), CUDA_SUCCESS);
  assert_int_equal(cuGraphAddChildGraphNode(&node, nested, NULL, 0, small), CUDA_SUCCESS);
  assert_int_equal(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  assert_int_equal(cuGraphAddChildGraphNode(&node, graph, NULL, 0, nested), CUDA_SUCCESS);
  assert_int_equal(cuGraphAddNode_v2(&after, graph, &node, NULL, 1, &parameters), CUDA_SUCCESS);
  assert_int_equal(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  struct tscope_graph_record made = LAST(GRAPH, graph);
  assert_int_equal(made.nodes, 7);
  assert_int_equal(made.kernels, 2 + 3);
  assert_int_equal(made.memcpys, 1);
  assert_int_equal(made.memsets, 1);
  assert_int_equal(made.collectives, 2);
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
  cuGraphDestroy(nested);
  cudaGraphDestroy(reduced);
  cudaGraphDestroy(small);
}

/* The body is captured once; the GPU decides how often it runs. */
static void a_conditional_body_is_known_but_not_how_often_it_runs(void **state) {
  (void)state;
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec executable;
  CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                  .conditional = {.type = CU_GRAPH_COND_TYPE_WHILE, .size = 1}};
  assert_int_equal(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  assert_int_equal(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &parameters), CUDA_SUCCESS);
  CUgraph body = parameters.conditional.phGraph_out[0], ended;
  for (int i = 0; i < 2; i++) { /* twice into the same graph */
    assert_int_equal(
        cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED),
        CUDA_SUCCESS);
    two_collectives();
    assert_int_equal(cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
    assert_ptr_equal(ended, body);
  }
  u32 bodies = count(TSCOPE_REC_GRAPH_BODY), replays = count(TSCOPE_REC_GRAPH_REPLAY);
  assert_int_equal(cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  struct tscope_graph_record made = LAST(GRAPH, graph);
  struct tscope_graph_body_record held = LAST(GRAPH_BODY, graph_body);
  assert_int_equal(count(TSCOPE_REC_GRAPH_BODY), bodies + 1);
  assert_int_equal(made.nodes, 1);
  assert_int_equal(made.kernels, 0);
  assert_int_equal(made.collectives, 0);
  assert_int_equal(held.graph, made.graph);
  assert_int_equal(held.header.tag, TSCOPE_CONDITION_WHILE);
  assert_int_equal(held.kernels, 6);
  assert_int_equal(held.collectives, 4);
  standin_condition(3);
  assert_int_equal(cuGraphLaunch(executable, stream), CUDA_SUCCESS);
  assert_int_equal(count(TSCOPE_REC_GRAPH_REPLAY), replays);
  cuGraphExecDestroy(executable);
  cuGraphDestroy(graph);
}

/* Nodes of graphs that are gone by now do not keep the bodies of new ones out. */
static void conditional_nodes_are_known_after_very_many_others(void **state) {
  cudaGraph_t bodies[3] = {(cudaGraph_t)0x1000, (cudaGraph_t)0x2000, (cudaGraph_t)0x3000};
  for (uintptr_t i = 1; i <= 20000; i++)
    graph_bodies_created((cudaGraphNode_t)(0x500000000000 + 64 * i), TSCOPE_CONDITION_SWITCH,
                         bodies, 3);
  a_conditional_body_is_known_but_not_how_often_it_runs(state);
}

enum { MANY = 100, MOST_COMMS = 80 };
static ncclComm_t many[MANY];

static void one_on_each(void) {
  for (int i = 0; i < MANY; i++)
    assert_int_equal(ncclAllReduce(data, data, 16, ncclFloat32, ncclSum, many[i], stream),
                     ncclSuccess);
}

static void a_graph_may_have_many_communicators(void **state) {
  (void)state;
  for (int i = 0; i < MANY; i++) {
    ncclUniqueId id;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_int_equal(ncclCommInitRank(&many[i], 1, id, 0), ncclSuccess);
  }
  u32 number, comms;
  u64 lost_before = lost_for(TSCOPE_LOSS_GRAPHS);
  cudaGraph_t graph = capture(one_on_each), clone;
  assert_int_equal(cudaGraphClone(&clone, graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaGraphExec_t executable = instantiate(clone);
  assert_int_equal(LAST(GRAPH, graph).collectives, MANY);
  for (u32 i = 0; i < 3; i++) {
    assert_int_equal(cudaGraphLaunch(executable, stream), cudaSuccess);
    assert_int_equal(replayed(&number, &comms).first_collective, i);
    assert_int_equal(comms, MOST_COMMS);
  }
  assert_true(lost_for(TSCOPE_LOSS_GRAPHS) >= lost_before + MANY - MOST_COMMS);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(clone);
  for (int i = 0; i < MANY; i++)
    ncclCommDestroy(many[i]);
}

static void *query_event(void *event) {
  return (void *)(intptr_t)cudaEventQuery(event);
}

/* A mistake of the job gives the same error as without tscope, and tscope knows that the stream is
 * free again. */
static void an_invalid_capture_ends(void **state) {
  (void)state;
  cudaGraph_t graph = NULL;
  cudaEvent_t event;
  pthread_t thread;
  void *asked;
  u32 launches = count(TSCOPE_REC_LAUNCH);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch_on(stream);
  assert_int_equal(captures_open, 1);
  pthread_create(&thread, NULL, query_event, event);
  pthread_join(thread, &asked);
  assert_int_equal((intptr_t)asked, cudaErrorStreamCaptureUnsupported);
  assert_int_equal(cudaLaunchKernel(&a_kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, stream),
                   cudaErrorStreamCaptureInvalidated);
  assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  assert_null(graph);
  assert_int_equal(captures_open, 0);
  cudaGetLastError();
  launch_on(stream);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 1);
  cudaEventDestroy(event);
}

static void a_failed_capture_leaves_nothing_open(void **state) {
  (void)state;
  cudaGraph_t graph;
  u32 launches = count(TSCOPE_REC_LAUNCH);
  assert_int_not_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal), cudaSuccess);
  assert_int_not_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGetLastError();
  launch_on(stream);
  assert_int_equal(count(TSCOPE_REC_LAUNCH), launches + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(invalid_handles_end_no_graph), /* first: its graph must have place 0 */
      cmocka_unit_test(a_capture_is_no_launch_but_a_graph),
      cmocka_unit_test(streams_that_join_are_captured_too),
      cmocka_unit_test(other_streams_are_recorded_during_a_capture),
      cmocka_unit_test(replayed_collectives_have_their_own_numbers),
      cmocka_unit_test(an_updated_executable_is_another_graph),
      cmocka_unit_test(a_capture_through_the_driver_is_one_too),
      cmocka_unit_test(a_graph_launched_in_a_capture_is_part_of_the_graph),
      cmocka_unit_test(a_child_added_by_hand_counts_with_what_it_holds),
      cmocka_unit_test(a_conditional_body_is_known_but_not_how_often_it_runs),
      cmocka_unit_test(conditional_nodes_are_known_after_very_many_others),
      cmocka_unit_test(a_graph_may_have_many_communicators),
      cmocka_unit_test(an_invalid_capture_ends),
      cmocka_unit_test(a_failed_capture_leaves_nothing_open),
  };
  return cmocka_run_group_tests(tests, set_up, trace_tear_down);
}
