/* SPDX-License-Identifier: MIT
 *
 * captures MODE: captures a stream with collectives in a mode (global, thread, relaxed) while other
 * threads launch, copy, allocate, query and record events; then makes calls that are illegal during
 * a capture. Its output (results, errors, the nodes and results of the graph) must be the same with
 * and without the shim; hazards.py compares. It runs on the stand-ins, which return the errors that
 * CUDA returns.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
                            dim3 *, dim3 *, int *);

enum { COUNT = 64, OTHERS = 3 };

static const char kernel;
static enum cudaStreamCaptureMode mode;
static cudaStream_t stream, side;
static ncclComm_t comms[2];
static int *data; /* on the device: a[COUNT], b[COUNT] */
static pthread_barrier_t barrier;

static void wait_for_all_threads(void) {
  pthread_barrier_wait(&barrier);
}

static void expect(const char *what, int error) {
  if (!error)
    return;
  printf("%s: error %d\n", what, error);
  fflush(stdout);
  exit(1);
}

static cudaError_t launch(cudaStream_t on) {
  return cudaLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0, on);
}

static cudaEvent_t new_event(void) {
  cudaEvent_t event;
  expect("event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/* The captured work: two streams, two communicators, a group, copies and a fill. */

static void fork_and_join(bool join, cudaEvent_t event) {
  expect("record", cudaEventRecord(event, join ? side : stream));
  expect("wait", cudaStreamWaitEvent(join ? stream : side, event, 0));
}

static void captured_work(cudaEvent_t forked, cudaEvent_t joined) {
  int *b = data + COUNT;
  expect("fill", cudaMemsetAsync(data, 1, COUNT * sizeof(int), stream));
  expect("launch", launch(stream));
  expect("sum", ncclAllReduce(data, data, COUNT, ncclInt32, ncclSum, comms[0], stream));
  fork_and_join(false, forked);
  expect("copy", cudaMemcpyAsync(b, data, COUNT * sizeof(int), cudaMemcpyDeviceToDevice, side));
  expect("launch", launch(side));
  expect("group", ncclGroupStart());
  expect("sum", ncclAllReduce(b, b, COUNT, ncclInt32, ncclSum, comms[1], side));
  expect("gather", ncclAllGather(b, b, COUNT, ncclInt32, comms[1], side));
  expect("group end", ncclGroupEnd());
  expect("launch", launch(stream));
  fork_and_join(true, joined);
}

static void *legal_calls(void *number) {
  cudaStream_t own;
  cudaEvent_t event = new_event();
  void *memory;
  enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
  expect("stream", cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  expect("mode", cudaThreadExchangeStreamCaptureMode(&relaxed));
  wait_for_all_threads();
  for (int i = 0; i < 200; i++) {
    cudaError_t status;
    expect("launch elsewhere", launch(own));
    expect("record elsewhere", cudaEventRecord(event, own));
    status = cudaEventQuery(event);
    if (status != cudaErrorNotReady)
      expect("query elsewhere", status);
    expect("allocation elsewhere", cudaMalloc(&memory, 4096));
    expect("fill elsewhere", cudaMemsetAsync(memory, 0, 4096, own));
    expect("stream elsewhere", cudaStreamSynchronize(own));
    expect("free elsewhere", cudaFree(memory));
  }
  wait_for_all_threads();
  expect("destroy", cudaStreamDestroy(own));
  (void)number;
  return NULL;
}

/* Long enough that the shim's periodic check of the GPU runs twice during the capture. */
static void wait_for_periodic_checks(void) {
  const struct timespec pause = {.tv_nsec = 250000000};
  nanosleep(&pause, NULL);
}

static void show_graph(cudaGraph_t graph) {
  CUgraphNode nodes[256];
  size_t n = 256;
  int kinds[32] = {0};
  expect("nodes", (int)cuGraphGetNodes((CUgraph)graph, nodes, &n));
  for (size_t i = 0; i < n; i++) {
    CUgraphNodeType type;
    expect("type", (int)cuGraphNodeGetType(nodes[i], &type));
    kinds[type % 32]++;
  }
  printf("%zu nodes:", n);
  for (int i = 0; i < 32; i++)
    if (kinds[i])
      printf(" %d of kind %d", kinds[i], i);
  printf("\n");
}

static void show_results(cudaGraph_t graph) {
  cudaGraphExec_t executable;
  unsigned results[2 * COUNT], sum = 0;
  expect("instantiate", cudaGraphInstantiateWithFlags(&executable, graph, 0));
  for (int i = 0; i < 3; i++)
    expect("replay", cudaGraphLaunch(executable, stream));
  expect("sync", cudaStreamSynchronize(stream));
  expect("back", cudaMemcpy(results, data, sizeof(results), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 2 * COUNT; i++)
    sum += results[i] * (unsigned)(i + 1);
  printf("results %u\n", sum);
  expect("exec destroy", cudaGraphExecDestroy(executable));
}

static void capture_among_others(void) {
  pthread_t threads[OTHERS];
  cudaEvent_t forked = new_event(), joined = new_event();
  cudaGraph_t graph;
  pthread_barrier_init(&barrier, NULL, OTHERS + 1);
  for (int i = 0; i < OTHERS; i++)
    pthread_create(&threads[i], NULL, legal_calls, NULL);
  /* unfinished work, which the shim's check queries during the capture */
  for (int i = 0; i < 20; i++)
    expect("sum before", ncclAllReduce(data, data, COUNT, ncclInt32, ncclMax, comms[0], stream));
  expect("begin", cudaStreamBeginCapture(stream, mode));
  wait_for_all_threads();
  captured_work(forked, joined);
  wait_for_periodic_checks();
  wait_for_all_threads();
  expect("end", cudaStreamEndCapture(stream, &graph));
  for (int i = 0; i < OTHERS; i++)
    pthread_join(threads[i], NULL);
  show_graph(graph);
  show_results(graph);
  expect("destroy", cudaGraphDestroy(graph));
  pthread_barrier_destroy(&barrier);
}

static cudaEvent_t pending;
static cudaStream_t blocking;

static int query_event(void) {
  return cudaEventQuery(pending);
}
static int wait_event(void) {
  return cudaEventSynchronize(pending);
}
static int allocate(void) {
  void *memory = NULL;
  int error = cudaMalloc(&memory, 4096);
  if (!error)
    cudaFree(memory);
  return error;
}
static int wait_device(void) {
  return cudaDeviceSynchronize();
}
static int query_stream(void) {
  return cudaStreamQuery(blocking);
}
static int wait_stream(void) {
  return cudaStreamSynchronize(blocking);
}
static int use_default_stream(void) {
  return launch(NULL);
}
static int record_on_default_stream(void) {
  return cudaEventRecord(pending, NULL);
}
static int copy_synchronously(void) {
  int value;
  return cudaMemcpy(&value, data, sizeof(value), cudaMemcpyDeviceToHost);
}
static int collective_on_default_stream(void) {
  return ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comms[0], NULL);
}
static int end_elsewhere(void) {
  cudaGraph_t graph = NULL;
  return cudaStreamEndCapture(blocking, &graph);
}
static int nothing(void) {
  return 0;
}

static const struct mistake {
  const char *name;
  int (*make)(void);
} mistakes[] = {{"no mistake", nothing},
                {"queries an event", query_event},
                {"waits for an event", wait_event},
                {"allocates", allocate},
                {"waits for the device", wait_device},
                {"queries the captured stream", query_stream},
                {"waits for the captured stream", wait_stream},
                {"uses the default stream", use_default_stream},
                {"records on the default stream", record_on_default_stream},
                {"copies synchronously", copy_synchronously},
                {"sums on the default stream", collective_on_default_stream},
                {"ends the capture", end_elsewhere}};

static void *make_mistake(void *mistake) {
  return (void *)(intptr_t)((const struct mistake *)mistake)->make();
}

static void with_mistake(const struct mistake *mistake, bool by_another_thread) {
  pthread_t thread;
  void *result;
  cudaGraph_t graph = NULL;
  enum cudaStreamCaptureStatus status;
  expect("record", cudaEventRecord(pending, side));
  expect("begin", cudaStreamBeginCapture(blocking, mode));
  int before = launch(blocking);
  if (by_another_thread) {
    pthread_create(&thread, NULL, make_mistake, (void *)mistake);
    pthread_join(thread, &result);
  } else {
    result = make_mistake((void *)mistake);
  }
  expect("status", cudaStreamIsCapturing(blocking, &status));
  int after = launch(blocking);
  int sum = ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comms[0], blocking);
  int end = cudaStreamEndCapture(blocking, &graph);
  printf("%s%s: %d, then status %d, launches %d %d, sum %d, end %d, %s; last error %d\n",
         mistake->name, by_another_thread ? " elsewhere" : "", (int)(intptr_t)result, status,
         before, after, sum, end, graph ? "a graph" : "no graph", cudaGetLastError());
  if (graph) {
    show_graph(graph);
    cudaGraphDestroy(graph);
  }
  expect("after all", cudaDeviceSynchronize());
}

/* A fork that is not joined, and a wait for an event from outside the capture. */
static void invalid_dependencies(void) {
  cudaGraph_t graph = NULL;
  cudaEvent_t event = new_event();
  expect("begin", cudaStreamBeginCapture(stream, mode));
  fork_and_join(false, event);
  expect("launch", launch(side));
  int end = cudaStreamEndCapture(stream, &graph);
  printf("unjoined: end %d, %s\n", end, graph ? "a graph" : "no graph");
  expect("record", cudaEventRecord(event, side));
  expect("begin", cudaStreamBeginCapture(stream, mode));
  int wait = cudaStreamWaitEvent(stream, event, 0);
  end = cudaStreamEndCapture(stream, &graph);
  printf("isolated: wait %d, end %d\n", wait, end);
  cudaGetLastError();
}

int main(int argc, char **argv) {
  static const char *const names[] = {"global", "thread", "relaxed"};
  for (int i = 0; i < 3; i++)
    if (argc == 2 && !strcmp(argv[1], names[i]))
      mode = (enum cudaStreamCaptureMode)i;
  __cudaRegisterFunction(NULL, &kernel, NULL, "_Z6kernelv", -1, NULL, NULL, NULL, NULL, NULL);
  expect("device", cudaSetDevice(0));
  expect("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  expect("stream", cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  expect("stream", cudaStreamCreate(&blocking));
  expect("memory", cudaMalloc((void **)&data, 2 * COUNT * sizeof(int)));
  pending = new_event();
  for (int i = 0; i < 2; i++) {
    ncclUniqueId id;
    expect("id", ncclGetUniqueId(&id));
    expect("communicator", ncclCommInitRank(&comms[i], 1, id, 0));
  }
  for (int i = 0; i < 2; i++)
    capture_among_others();
  for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
    for (int elsewhere = 0; elsewhere < 2; elsewhere++)
      if (elsewhere || mistakes[i].make != end_elsewhere)
        with_mistake(&mistakes[i], elsewhere);
  invalid_dependencies();
  for (int i = 0; i < 2; i++)
    expect("communicator's end", ncclCommDestroy(comms[i]));
  return 0;
}
