/* SPDX-License-Identifier: MIT */
#include "graphs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/gpu_clock.h"
#include "handle_map.h"

enum { MAX_GRAPHS = 8192, MAX_NODES_LOOKED_AT = 1 << 20 };

/* Captures under way by id, captured graphs and executables by handle. */
HANDLE_MAP(by_handle, 4 * MAX_GRAPHS);

/* All guarded by by_handle's lock, but for what an executable holds while it is one. */
static struct graph {
  struct graph_content content;
  u32 number; /* of an executable */
} graphs[MAX_GRAPHS];
static u32 free_places[MAX_GRAPHS];
static u32 n_free, n_places, last_number;

u32 captures_open;

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

static struct graph *find(u64 key) {
  u64 place;
  return handle_map_get(&by_handle, key, &place) ? &graphs[place] : NULL;
}

/* The entry of a key, new and empty if there was none. NULL when the table is full. */
static struct graph *enter_locked(u64 key) {
  struct graph *graph = find(key);
  if (!graph) {
    u64 place = n_free ? free_places[--n_free] : n_places < MAX_GRAPHS ? n_places++ : MAX_GRAPHS;
    if (place == MAX_GRAPHS)
      return NULL;
    if (!handle_map_put_locked(&by_handle, key, place)) {
      free_places[n_free++] = (u32)place;
      return NULL;
    }
    graph = &graphs[place];
  }
  memset(graph, 0, sizeof *graph);
  return graph;
}

/* Removes the entry and says what it held. */
static bool take(u64 key, struct graph_content *content) {
  u64 place;
  if (!handle_map_take(&by_handle, key, &place))
    return false;
  handle_map_lock(&by_handle);
  if (content)
    *content = graphs[place].content;
  free_places[n_free++] = (u32)place;
  handle_map_unlock(&by_handle);
  return true;
}

/* Of cuStreamGetCaptureInfo's versions and the runtime's, whichever is there: they begin alike, and
 * take NULL for what follows. */
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
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols && !found; i++)
    found = (capture_info *)tscope_resolve(&symbols[i], NULL);
  return found;
}

/* The legacy default stream cannot be captured, and asking about it disturbs captures. */
u64 graph_capture_id(enum tscope_default_stream default_stream, cudaStream_t stream) {
  u64 handle = (u64)(uintptr_t)stream;
  handle = handle ? handle : default_stream;
  if (handle == TSCOPE_STREAM_LEGACY)
    return 0;
  int saved = errno, status = 0;
  unsigned long long id = 0;
  capture_info *get = find_capture_info();
  if (!get || get((cudaStream_t)(uintptr_t)handle, &status, &id, NULL, NULL, NULL, NULL) || !status)
    id = 0;
  errno = saved;
  return id;
}

void graph_capture_began(u64 id) {
  if (!id)
    return;
  __atomic_fetch_add(&captures_open, 1, __ATOMIC_RELAXED);
  handle_map_lock(&by_handle);
  struct graph *graph = enter_locked(capture_key(id));
  if (graph)
    graph->content.captured = ++last_number;
  handle_map_unlock(&by_handle);
}

void graph_capture_ended(u64 id, cudaGraph_t handle) {
  u32 open = __atomic_load_n(&captures_open, __ATOMIC_RELAXED);
  while (open && !__atomic_compare_exchange_n(&captures_open, &open, open - 1, true,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
  struct graph_content content;
  if (!take(capture_key(id), &content) || !handle)
    return;
  handle_map_lock(&by_handle);
  struct graph *graph = enter_locked(graph_key(handle));
  if (graph)
    graph->content = content;
  handle_map_unlock(&by_handle);
}

bool graph_captured_slow(enum tscope_default_stream default_stream, cudaStream_t stream,
                         enum graph_work work) {
  u64 id = graph_capture_id(default_stream, stream);
  if (!id)
    return false;
  handle_map_lock(&by_handle);
  struct graph *graph = find(capture_key(id));
  if (graph) {
    graph->content.kernels += work == GRAPH_KERNEL;
    graph->content.copies += work == GRAPH_COPY;
    graph->content.fills += work == GRAPH_FILL;
  }
  handle_map_unlock(&by_handle);
  return true;
}

/* The communicator's entry in a content; the last one stands for all that find no room. */
static struct graph_comm *comm_of(struct graph_content *content, u32 comm) {
  for (u32 i = 0; i < content->n_comms; i++)
    if (content->comms[i].comm == comm)
      return &content->comms[i];
  if (content->n_comms == GRAPH_COMMS)
    return NULL;
  struct graph_comm *fresh = &content->comms[content->n_comms++];
  fresh->comm = comm;
  return fresh;
}

bool graph_capture_collective(cudaStream_t stream, u32 comm, u32 *next_collective,
                              u32 *next_transfer, bool transfer, u32 *captured, u32 *index) {
  u64 id = TSCOPE_LIKELY(!__atomic_load_n(&captures_open, __ATOMIC_RELAXED))
               ? 0
               : graph_capture_id(TSCOPE_STREAM_LEGACY, stream);
  if (TSCOPE_LIKELY(!id))
    return false;
  *captured = 0;
  *index = TSCOPE_UNKNOWN;
  handle_map_lock(&by_handle);
  struct graph *graph = find(capture_key(id));
  struct graph_comm *of = graph ? comm_of(&graph->content, comm) : NULL;
  if (graph) {
    *captured = graph->content.captured;
    graph->content.collectives++;
  }
  if (of) {
    of->next_collective = next_collective;
    of->next_transfer = next_transfer;
    *index = transfer ? of->transfers++ : of->collectives++;
  }
  handle_map_unlock(&by_handle);
  return true;
}

u32 graph_capture_number(enum tscope_default_stream default_stream, cudaStream_t stream) {
  u64 id = __atomic_load_n(&captures_open, __ATOMIC_RELAXED)
               ? graph_capture_id(default_stream, stream)
               : 0;
  if (!id)
    return 0;
  handle_map_lock(&by_handle);
  const struct graph *graph = find(capture_key(id));
  u32 number = graph ? graph->content.captured : 0;
  handle_map_unlock(&by_handle);
  return number;
}

void graph_cloned(cudaGraph_t clone, cudaGraph_t handle) {
  handle_map_lock(&by_handle);
  const struct graph *graph = find(graph_key(handle));
  struct graph_content content = graph ? graph->content : (struct graph_content){0};
  struct graph *copy = graph ? enter_locked(graph_key(clone)) : NULL;
  if (copy)
    copy->content = content;
  handle_map_unlock(&by_handle);
}

void graph_gone(cudaGraph_t handle) {
  take(graph_key(handle), NULL);
}

void graph_executable_gone(cudaGraphExec_t executable) {
  take(executable_key(executable), NULL);
}

/* Counts the nodes by kind, if the driver says; `nodes` alone if there are too many to look at. */
static void count_nodes(cudaGraph_t graph, struct graph_content *content) {
  static struct tscope_symbol nodes_symbol = {.name = "cuGraphGetNodes",
                                              .sonames = tscope_driver_sonames};
  static struct tscope_symbol type_symbol = {.name = "cuGraphNodeGetType",
                                             .sonames = tscope_driver_sonames};
  enum { KERNEL_NODE, COPY_NODE, FILL_NODE, KINDS };
  int (*get_nodes)(cudaGraph_t, void **, size_t *) = tscope_resolve(&nodes_symbol, NULL);
  int (*get_type)(void *, int *) = tscope_resolve(&type_symbol, NULL);
  size_t n = 0;
  if (!get_nodes || !get_type || get_nodes(graph, NULL, &n))
    return;
  content->nodes = (u32)n;
  if (!n || n > MAX_NODES_LOOKED_AT)
    return;
  void **nodes =
      mmap(NULL, n * sizeof *nodes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (nodes == MAP_FAILED)
    return;
  u32 counts[KINDS] = {0};
  size_t room = n;
  bool counted = !get_nodes(graph, nodes, &n) && n <= room;
  for (size_t i = 0; i < n && counted; i++) {
    int type = KINDS;
    counted = !get_type(nodes[i], &type);
    if (type >= 0 && type < KINDS)
      counts[type]++;
  }
  munmap(nodes, room * sizeof *nodes);
  if (!counted)
    return;
  content->kernels = counts[KERNEL_NODE];
  content->copies = counts[COPY_NODE];
  content->fills = counts[FILL_NODE];
}

void graph_executable_made(struct tscope_thread *thread, cudaGraphExec_t executable,
                           cudaGraph_t handle) {
  int saved = errno;
  struct graph_content content = {.nodes = TSCOPE_UNKNOWN,
                                  .kernels = TSCOPE_UNKNOWN,
                                  .copies = TSCOPE_UNKNOWN,
                                  .fills = TSCOPE_UNKNOWN};
  handle_map_lock(&by_handle);
  const struct graph *graph = find(graph_key(handle));
  if (graph)
    content = graph->content;
  handle_map_unlock(&by_handle);
  if (graph)
    content.nodes = TSCOPE_UNKNOWN;
  count_nodes(handle, &content);
  handle_map_lock(&by_handle);
  struct graph *made = enter_locked(executable_key(executable));
  u32 number = made ? ++last_number : 0;
  if (made) {
    made->content = content;
    made->number = number;
  }
  handle_map_unlock(&by_handle);
  struct tscope_graph_record record = {.graph = number,
                                       .captured = content.captured,
                                       .nodes = content.nodes,
                                       .kernels = content.kernels,
                                       .copies = content.copies,
                                       .fills = content.fills,
                                       .collectives = content.collectives,
                                       .gpu_graph = gpu_clock_graph_id(executable)};
  if (made)
    tscope_spine(thread, tscope_ticks(), TSCOPE_REC_GRAPH, 0, &record, sizeof record);
  errno = saved;
}

u32 graph_executable(cudaGraphExec_t executable, const struct graph_content **content) {
  const struct graph *graph = find(executable_key(executable));
  *content = graph && graph->content.collectives ? &graph->content : NULL;
  return graph ? graph->number : 0;
}
