/* SPDX-License-Identifier: MIT */
#include "cuda/graphs/cuda_graphs.h"

#include <string.h>

#include "cuda/graphs/graph_nodes.h"
#include "gpu/gpu_clock.h"
#include "hooks/handle_map.h"
#include "record/atomics.h"

enum { MAX_GRAPHS = 8192, MAX_CAPTURES = 1024 };

/* Captures under way by id, captured graphs and executables by handle. */
HANDLE_MAP(by_handle, 4 * MAX_GRAPHS);

/* Ids of captures under way by the streams that they began on. */
HANDLE_MAP(by_origin, MAX_CAPTURES);

/* All guarded by by_handle's lock, except the content of an executable as long as it exists. */
static struct graph {
  struct graph_content content;
  cudaGraph_t into; /* of a capture: the graph that it adds to, NULL if it makes one */
  u64 began;        /* of a capture: ticks */
  u32 number;       /* of an executable */
} graphs[MAX_GRAPHS];
static u32 free_slots[MAX_GRAPHS];
static u32 n_free, n_slots, last_number;

/* Small numbers and pointers do not meet. */
static u64 capture_key(u64 id) {
  return 1ull << 63 | id;
}

static u64 graph_key(const void *handle) {
  return (u64)(uintptr_t)handle;
}

/* Handles of graphs and of executables may be equal. */
static u64 executable_key(const void *handle) {
  return 1ull << 62 | (u64)(uintptr_t)handle;
}

static bool lock(void) {
  return tscope_lock(&by_handle.lock);
}

static void unlock(void) {
  tscope_unlock(&by_handle.lock);
}

static struct graph *find_graph(u64 key) {
  u64 slot;
  return handle_map_get(&by_handle, key, &slot) ? &graphs[slot] : NULL;
}

/* NULL when the table is full. */
static struct graph *new_locked(u64 key) {
  u64 slot = n_free ? free_slots[--n_free] : n_slots < MAX_GRAPHS ? n_slots++ : MAX_GRAPHS;
  if (slot < MAX_GRAPHS && handle_map_put_locked(&by_handle, key, slot))
    return &graphs[slot];
  if (slot < MAX_GRAPHS)
    free_slots[n_free++] = (u32)slot;
  tscope_count_lost(TSCOPE_LOSS_GRAPHS, 1);
  return NULL;
}

/* The entry of a key, new and empty if there was none. NULL when the table is full. */
static struct graph *add_locked(u64 key) {
  struct graph *graph = find_graph(key);
  if (!graph)
    graph = new_locked(key);
  if (!graph)
    return NULL;
  graph_content_clear(&graph->content);
  graph->into = NULL;
  graph->number = 0;
  return graph;
}

/* Removes the entry and puts its content into `removed`; if `removed` is NULL, the content is
 * released. */
static bool remove_graph(u64 key, struct graph *removed) {
  u64 slot;
  if (!find_graph(key) || !lock())
    return false;
  bool found = handle_map_remove_locked(&by_handle, key, &slot);
  if (found) {
    if (removed)
      *removed = graphs[slot];
    else
      graph_content_clear(&graphs[slot].content);
    memset(&graphs[slot], 0, sizeof(graphs[slot]));
    free_slots[n_free++] = (u32)slot;
  }
  unlock();
  return found;
}

/* Whichever exists of cuStreamGetCaptureInfo's versions and the runtime's: their first parameters
 * are the same, and they take NULL for the rest. */
typedef int capture_info(cudaStream_t stream, int *status, unsigned long long *id, void *, void *,
                         void *, void *);

static capture_info *find_capture_info(void) {
  static struct tscope_symbol symbols[] = {
      {.name = "cuStreamGetCaptureInfo_v3", .sonames = tscope_driver_sonames},
      {.name = "cuStreamGetCaptureInfo_v2", .sonames = tscope_driver_sonames},
      {.name = "cuStreamGetCaptureInfo", .sonames = tscope_driver_sonames},
      {.name = "cudaStreamGetCaptureInfo_v3", .sonames = tscope_cuda_sonames},
      {.name = "cudaStreamGetCaptureInfo_v2", .sonames = tscope_cuda_sonames}};
  static capture_info *found;
  for (size_t i = 0; i < LENGTH_OF(symbols) && !found; i++)
    found = (capture_info *)tscope_resolve(&symbols[i], NULL);
  return found;
}

/* The legacy default stream cannot be captured, and a query about it disturbs captures. */
u64 graph_capture_id(enum tscope_default_stream default_stream, cudaStream_t stream) {
  u64 handle = (u64)(uintptr_t)stream;
  handle = handle ? handle : default_stream;
  if (handle == TSCOPE_STREAM_LEGACY)
    return 0;
  int status = 0;
  TSCOPE_KEEP_ERRNO;
  unsigned long long id = 0;
  capture_info *get = find_capture_info();
  if (!get || get((cudaStream_t)(uintptr_t)handle, &status, &id, NULL, NULL, NULL, NULL) || !status)
    id = 0;
  return id;
}

void graph_capture_began(u64 start, u64 stream, u64 id, cudaGraph_t into) {
  if (!id)
    return;
  __atomic_fetch_add(&captures_open, 1, __ATOMIC_RELAXED);
  handle_map_put(&by_origin, stream, id);
  if (!lock())
    return;
  struct graph *graph = add_locked(capture_key(id));
  if (graph) {
    graph->content.captured = ++last_number;
    graph->into = into;
    graph->began = start;
  }
  unlock();
}

/* A graph inside another, for the code that numbers its calls. */
struct child_record {
  struct tscope_graph_child_record record;
  struct tscope_graph_comm comms[GRAPH_COMMS];
};

/* Puts a child into a graph, with the lock held, and fills in the record to write of it. */
static void add_child(struct graph_content *outer, const struct graph_content *child,
                      struct child_record *out) {
  out->record =
      (struct tscope_graph_child_record){.captured = outer->captured, .child = child->captured};
  out->record.comms = graph_content_add(outer, child, out->comms);
}

/* Recorded even if it has no calls: it may hold other things that are counted. */
static void write_child(struct tscope_thread *thread, struct child_record *child) {
  u32 bytes = (u32)(sizeof(child->record) + child->record.comms * sizeof(*child->comms));
  if (child->record.captured && child->record.child)
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GRAPH_CHILD, 0, child, bytes);
}

void graph_capture_ended(struct tscope_thread *thread, u64 stream, cudaGraph_t handle) {
  u64 id;
  if (!handle_map_remove(&by_origin, stream, &id))
    return;
  tscope_atomic_less_one(&captures_open);
  struct graph capture;
  struct child_record added = {0};
  if (!remove_graph(capture_key(id), &capture))
    return;
  struct tscope_capture_record whole = {.dur = tscope_ticks() - capture.began};
  tscope_retain(thread, capture.began, TSCOPE_REC_CAPTURE, 0, &whole, sizeof(whole));
  if (!lock())
    return;
  struct graph *before = handle && capture.into == handle ? find_graph(graph_key(handle)) : NULL;
  if (before)
    add_child(&before->content, &capture.content, &added);
  struct graph *graph = handle && !before ? add_locked(graph_key(handle)) : NULL;
  if (graph)
    graph->content = capture.content;
  else
    graph_content_clear(&capture.content);
  unlock();
  write_child(thread, &added);
}

void graph_captured_launch(struct tscope_thread *thread, u64 id, cudaGraphExec_t executable) {
  struct child_record added = {0};
  if (!lock())
    return;
  struct graph *outer = find_graph(capture_key(id));
  const struct graph *child = find_graph(executable_key(executable));
  if (outer && child)
    add_child(&outer->content, &child->content, &added);
  unlock();
  write_child(thread, &added);
}

/* If a graph was made node by node, tscope does not see what else it holds. */
void graph_child_added(struct tscope_thread *thread, cudaGraph_t handle, cudaGraph_t child_handle) {
  struct child_record added = {0};
  if (!lock())
    return;
  struct graph *outer = find_graph(graph_key(handle));
  if (!outer && (outer = add_locked(graph_key(handle)))) {
    struct graph_content *content = &outer->content;
    content->captured = ++last_number;
    content->nodes = content->kernels = content->memcpys = content->memsets = TSCOPE_UNKNOWN;
  }
  const struct graph *child = find_graph(graph_key(child_handle));
  if (outer && child)
    add_child(&outer->content, &child->content, &added);
  unlock();
  write_child(thread, &added);
}

bool graph_captured_slow(enum tscope_default_stream default_stream, cudaStream_t stream,
                         enum graph_work work) {
  u64 id = graph_capture_id(default_stream, stream);
  if (!id)
    return false;
  if (!lock())
    return true;
  struct graph *graph = find_graph(capture_key(id));
  if (graph) {
    graph->content.kernels += work == GRAPH_KERNEL;
    graph->content.memcpys += work == GRAPH_MEMCPY;
    graph->content.memsets += work == GRAPH_MEMSET;
  }
  unlock();
  return true;
}

bool graph_capture_collective(cudaStream_t stream, u32 comm, u32 *next_collective,
                              u32 *next_transfer, bool transfer, u32 *captured, u32 *index) {
  u64 id = graph_known_capture(TSCOPE_STREAM_LEGACY, stream);
  if (TSCOPE_LIKELY(!id))
    return false;
  *captured = 0;
  *index = TSCOPE_UNKNOWN;
  if (!lock())
    return true;
  struct graph *graph = find_graph(capture_key(id));
  struct graph_comm *of = graph ? graph_content_comm(&graph->content, comm) : NULL;
  if (graph) {
    *captured = graph->content.captured;
    graph->content.collectives++;
  }
  if (of) {
    of->next_collective = next_collective;
    of->next_transfer = next_transfer;
    *index = transfer ? of->transfers++ : of->collectives++;
  }
  unlock();
  return true;
}

u32 graph_capture_number(enum tscope_default_stream default_stream, cudaStream_t stream) {
  u64 id = graph_known_capture(default_stream, stream);
  if (!id || !lock())
    return 0;
  const struct graph *graph = find_graph(capture_key(id));
  u32 number = graph ? graph->content.captured : 0;
  unlock();
  return number;
}

void graph_cloned(cudaGraph_t clone, cudaGraph_t handle) {
  if (!lock())
    return;
  struct graph *copy = find_graph(graph_key(handle)) ? add_locked(graph_key(clone)) : NULL;
  const struct graph *graph = find_graph(graph_key(handle));
  if (copy && graph && copy != graph)
    graph_content_copy(&copy->content, &graph->content);
  unlock();
}

void graph_destroyed(cudaGraph_t handle) {
  remove_graph(graph_key(handle), NULL);
}

void graph_executable_destroyed(cudaGraphExec_t executable) {
  remove_graph(executable_key(executable), NULL);
}

/* The known content of a graph that was not captured, apart from what the driver lists. */
static const struct graph_content unknown_content = {.nodes = TSCOPE_UNKNOWN,
                                                     .kernels = TSCOPE_UNKNOWN,
                                                     .memcpys = TSCOPE_UNKNOWN,
                                                     .memsets = TSCOPE_UNKNOWN};

/* Only counts: the communicators stay with the graph. */
static struct graph_content content_of(cudaGraph_t handle) {
  struct graph_content content = unknown_content;
  if (lock()) {
    const struct graph *graph = find_graph(graph_key(handle));
    if (graph)
      content = graph->content;
    unlock();
  }
  content.nodes = TSCOPE_UNKNOWN;
  return content;
}

/* The parts of the graph for which the GPU decides how often they run, and such parts inside
 * them. */
static void record_bodies(struct tscope_thread *thread, u32 number, struct graph_body *bodies,
                          u32 n_bodies) {
  for (u32 i = 0; i < n_bodies; i++) {
    struct graph_content content = content_of(bodies[i].graph);
    if (bodies[i].graph)
      graph_nodes_count(bodies[i].graph, &content, bodies, &n_bodies);
    struct tscope_graph_body_record record = {.graph = number,
                                              .captured = content.captured,
                                              .nodes = content.nodes,
                                              .kernels = content.kernels,
                                              .memcpys = content.memcpys,
                                              .memsets = content.memsets,
                                              .collectives = content.collectives};
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GRAPH_BODY, bodies[i].condition, &record,
                  sizeof(record));
  }
}

void graph_executable_created(struct tscope_thread *thread, cudaGraphExec_t executable,
                              cudaGraph_t handle) {
  TSCOPE_KEEP_ERRNO;
  struct graph_body bodies[MAX_BODIES];
  u32 n_bodies = 0;
  struct graph_content counted = content_of(handle);
  graph_nodes_count(handle, &counted, bodies, &n_bodies);
  if (!lock())
    return;
  struct graph *made = add_locked(executable_key(executable));
  const struct graph *graph = find_graph(graph_key(handle));
  u32 number = made ? ++last_number : 0;
  if (made) {
    graph_content_copy(&made->content, graph ? &graph->content : &unknown_content);
    made->content.nodes = counted.nodes;
    made->content.kernels = counted.kernels;
    made->content.memcpys = counted.memcpys;
    made->content.memsets = counted.memsets;
    made->number = number;
  }
  unlock();
  struct tscope_graph_record record = {.graph = number,
                                       .captured = counted.captured,
                                       .nodes = counted.nodes,
                                       .kernels = counted.kernels,
                                       .memcpys = counted.memcpys,
                                       .memsets = counted.memsets,
                                       .collectives = counted.collectives,
                                       .gpu_graph = gpu_clock_graph_id(executable)};
  if (made) {
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_GRAPH, 0, &record, sizeof(record));
    record_bodies(thread, number, bodies, n_bodies);
  }
}

u32 graph_executable(cudaGraphExec_t executable, const struct graph_content **content) {
  const struct graph *graph = find_graph(executable_key(executable));
  *content = graph && graph->content.collectives ? &graph->content : NULL;
  return graph ? graph->number : 0;
}
