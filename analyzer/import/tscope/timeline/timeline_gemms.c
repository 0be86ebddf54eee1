/* SPDX-License-Identifier: MIT */
#include "import/tscope/timeline/timeline_gemms.h"

#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/sorting.h"
#include "import/tscope/timeline/timeline_build.h"

/* Of the record of a GEMM, called or captured. */
#define SHAPE_OF(gemm)                                                                             \
  {                                                                                                \
    .m = (gemm)->m, .n = (gemm)->n, .k = (gemm)->k, .batch = (gemm)->batch, .a = (gemm)->a,        \
    .b = (gemm)->b, .c = (gemm)->c,                                                                \
    .precision = (u8)gemm_precision((gemm)->a, (gemm)->b, (gemm)->compute)                         \
  }

static u64 shape_hash(const struct gemm_shape *shape) {
  const u32 words[] = {shape->m, shape->n, shape->k, shape->batch,
                       (u32)shape->a << 24 | (u32)shape->b << 16 | (u32)shape->c << 8 |
                           shape->precision};
  return table_hash(0, words, sizeof(words));
}

static bool is_same(const struct gemm_shape *a, const struct gemm_shape *b) {
  return a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch && a->a == b->a &&
         a->b == b->b && a->c == b->c && a->precision == b->precision;
}

/* Index of a shape. */
static u32 shape_index(struct gemms_build *build, const struct gemm_shape *shape) {
  return HASHED_OR_ADD(&build->shapes, shape_hash(shape), one, is_same(one, shape), *shape);
}

ORDER_BY(by_shape, struct graph_gemm, UP(shape) UP(flops))

ORDER_BY(by_name, struct graph_kernel, UP(name))

static void count_kernel(struct graph_kernel *known, const struct graph_kernel *same) {
  known->count++;
  if (known->precision != same->precision)
    known->precision = PRECISION_UNKNOWN;
}

/* One captured GEMM and the names of its kernels, put into the content's arrays. */
static void add_gemm(struct timeline_build *build, const struct captured_gemm *captured,
                     struct graph_content *content) {
  const struct definitions *definitions = &build->definitions;
  const struct tscope_graph_gemm_record *record = &captured->record;
  struct gemm_shape shape = SHAPE_OF(record);
  u32 index = shape_index(&build->gemms_build, &shape);
  content->calls++;
  content->flops += record->flops == ARITHMETIC_UNKNOWN ? 0 : record->flops;
  content->gemms[content->n_gemms++] = (struct graph_gemm){index, 1, record->flops};
  for (u32 k = 0; k < captured->n_kernels; k++) {
    u32 number = definitions->captured_kernels[captured->first_kernel + k];
    u32 name = number < definitions->n_shapes ? definitions->shapes[number].kernel : 0;
    if (name)
      content->kernels[content->n_kernels++] = (struct graph_kernel){name, 1, shape.precision};
    content->named &= name != 0;
  }
  content->named &= captured->n_kernels > 0 && captured->n_kernels == record->kernels;
}

/* The GEMMs of one captured graph, of which there are n, and their kernels. */
static void add_content(struct timeline_build *build, u32 captured,
                        const struct captured_gemm *const *gemms, u32 n) {
  u32 kernels = TOTAL(u32, gemms, n, one, (*one)->n_kernels);
  struct graph_content content = {.captured = captured,
                                  .gemms = arena_array(&build->arena, n, sizeof(*content.gemms)),
                                  .kernels =
                                      arena_array(&build->arena, kernels, sizeof(*content.kernels)),
                                  .named = true};
  FOR_EACH(gemms, n, gemm)
    add_gemm(build, *gemm, &content);
  content.n_gemms =
      SORT_AND_JOIN(content.gemms, content.n_gemms, by_shape, one, same, one->calls++);
  content.n_kernels = SORT_AND_JOIN(content.kernels, content.n_kernels, by_name, one, same,
                                    count_kernel(one, same));
  VECTOR_PUSH(&build->gemms_build.contents, content);
}

/* The GEMMs of a graph and of those that were put into it. */
struct gathering {
  const struct definitions *definitions;
  u32 visited; /* GEMMs and graphs, of all graphs together */
  VECTOR(const struct captured_gemm *) gemms;
};

/* If a file claims more, the rest is not believed. */
enum { MOST_DEPTH = 16, MOST_VISITED = 1 << 22 };

static u32 first_gemm(const struct definitions *definitions, u32 captured) {
  return FIRST_NOT(0, definitions->n_captured_gemms, i,
                   definitions->captured_gemms[i].record.captured < captured);
}

static u32 first_child(const struct definitions *definitions, u32 captured) {
  return FIRST_NOT(0, definitions->n_graph_children, i,
                   definitions->graph_children[i].captured < captured);
}

static void collect_gemms(struct gathering *into, u32 captured, u32 depth) {
  const struct definitions *definitions = into->definitions;
  for (u32 i = first_gemm(definitions, captured);
       i < definitions->n_captured_gemms && into->visited < MOST_VISITED &&
       definitions->captured_gemms[i].record.captured == captured;
       i++, into->visited++)
    VECTOR_PUSH(&into->gemms, &definitions->captured_gemms[i]);
  for (u32 i = first_child(definitions, captured);
       depth < MOST_DEPTH && i < definitions->n_graph_children && into->visited < MOST_VISITED &&
       definitions->graph_children[i].captured == captured;
       i++, into->visited++)
    collect_gemms(into, definitions->graph_children[i].child, depth + 1);
}

/* The lowest number of a captured graph, above `last`, that has GEMMs or children; 0 for none.
 */
static u32 next_captured(const struct definitions *definitions, u32 last) {
  u32 gemm = first_gemm(definitions, last + 1), child = first_child(definitions, last + 1);
  u32 of_gemm = gemm < definitions->n_captured_gemms
                    ? definitions->captured_gemms[gemm].record.captured
                    : UINT32_MAX;
  u32 of_child = child < definitions->n_graph_children ? definitions->graph_children[child].captured
                                                       : UINT32_MAX;
  u32 next = MIN(of_gemm, of_child);
  return next == UINT32_MAX ? 0 : next;
}

void timeline_gemms_begin(struct timeline_build *build) {
  struct gathering gathering = {.definitions = &build->definitions};
  for (u32 captured = 0; (captured = next_captured(&build->definitions, captured));) {
    gathering.gemms.n = 0;
    collect_gemms(&gathering, captured, 0);
    if (gathering.gemms.n)
      add_content(build, captured, gathering.gemms.at, gathering.gemms.n);
  }
  free(gathering.gemms.at);
}

ORDER_BY(by_capture, struct graph_content, UP(captured))

/* A graph without captured GEMMs adds nothing; what a graph adds whose capture was not seen is not
 * known. */
void timeline_replay(struct timeline_build *build, u32 graph, struct interval call, u16 lane) {
  const struct gemms_build *gemms = &build->gemms_build;
  const struct rank_graph *made = rank_find_graph(build->events, graph);
  struct arithmetic replay = {.start = call.start,
                              .end = call.end,
                              .flops = ARITHMETIC_UNKNOWN,
                              .what = INDEX_NONE,
                              .lane = lane,
                              .replay = true};
  if (made && made->captured) {
    struct graph_content key = {.captured = made->captured};
    const struct graph_content *content =
        FIND_SORTED(gemms->contents.at, gemms->contents.n, &key, by_capture);
    if (!content)
      return;
    replay.flops = content->flops;
    replay.what = (u32)(content - gemms->contents.at);
  }
  VECTOR_PUSH(&build->arithmetic, replay);
}

void timeline_gemm(struct timeline_build *build, const struct tscope_gemm_record *gemm,
                   struct interval call, u16 lane) {
  struct gemms_build *gemms = &build->gemms_build;
  struct gemm_shape shape = SHAPE_OF(gemm);
  struct arithmetic arithmetic = {.start = call.start,
                                  .end = call.end,
                                  .flops = gemm->flops,
                                  .what = shape_index(gemms, &shape),
                                  .lane = lane,
                                  .captured = gemm->captured != 0};
  struct timed_call timed = {call.start, gemm->timed, lane};
  VECTOR_PUSH(&build->arithmetic, arithmetic);
  if (gemm->timed)
    VECTOR_PUSH(&gemms->calls, timed);
}

void timeline_gemm_time(struct timeline_build *build, const struct tscope_gpu_work_record *work,
                        struct interval ran) {
  struct timed_work timed = {ran.start, ran.end, work->number, work->one_in};
  if (work->number)
    VECTOR_PUSH(&build->gemms_build.works, timed);
}

ORDER_BY(by_lane, struct arithmetic, UP(lane) UP(start))

ORDER_BY(by_number_of_call, struct timed_call, UP(number))

ORDER_BY(by_number_of_work, struct timed_work, UP(number))

/* The timed work of each call that says its number. */
static u32 join_times(struct timeline_build *build, struct gemm_time *times) {
  struct gemms_build *gemms = &build->gemms_build;
  u32 n = 0;
  for (u32 i = 0, w = 0; i < gemms->calls.n; i++) {
    const struct timed_call *call = &gemms->calls.at[i];
    while (w < gemms->works.n && gemms->works.at[w].number < call->number)
      w++;
    if (w == gemms->works.n || gemms->works.at[w].number != call->number)
      continue;
    struct arithmetic key = {.start = call->start, .lane = call->lane};
    const struct arithmetic *found =
        FIND_SORTED(build->arithmetic.at, build->arithmetic.n, &key, by_lane);
    if (found)
      times[n++] =
          (struct gemm_time){gemms->works.at[w].start, gemms->works.at[w].end,
                             (u32)(found - build->arithmetic.at), gemms->works.at[w].one_in};
  }
  return n;
}

void timeline_gemms_end(struct timeline_build *build) {
  struct gemms_build *from = &build->gemms_build;
  SORT(build->arithmetic.at, build->arithmetic.n, by_lane);
  SORT(from->calls.at, from->calls.n, by_number_of_call);
  SORT(from->works.at, from->works.n, by_number_of_work);
  struct gemms *gemms = arena_alloc(&build->arena, sizeof(*gemms));
  gemms->shapes = VECTOR_KEPT(&from->shapes, &build->arena);
  gemms->contents = VECTOR_KEPT(&from->contents, &build->arena);
  gemms->times = arena_array(&build->arena, from->calls.n, sizeof(*gemms->times));
  gemms->n_shapes = from->shapes.n;
  gemms->n_contents = from->contents.n;
  gemms->n_times = join_times(build, gemms->times);
  build->gemms = gemms;
}

void gemms_build_release(struct gemms_build *build) {
  FREE_EACH(build, shapes.at, shapes.index.slots, calls.at, works.at, contents.at);
}
