/* SPDX-License-Identifier: MIT
 *
 * Names of what is on the critical path: kernels, operators, calls. The names are in timelines that
 * are no longer loaded when the path is walked. So nodes keep a number, and this file keeps the
 * name for each number.
 */
#include "analyses/path/path_labels.h"

#include <pthread.h>
#include <stdlib.h>

#include "analyses/queries.h"
#include "base/hash_index.h"
#include "base/sorting.h"
#include "base/vector.h"
#include "kernels/kernels.h"

enum { LABELS_LISTED = 50, SEGMENTS_LISTED = 200 };

struct label {
  u32 number;
  bool is_kernel;
  const char *text;
};

struct path_labels {
  pthread_mutex_t lock;
  struct arena arena;
  HASHED(struct label) list;
};

void path_labels_new(struct path_labels **labels) {
  *labels = memory_zeroed(1, sizeof(**labels));
  pthread_mutex_init(&(*labels)->lock, NULL);
}

void path_labels_free(struct path_labels *labels) {
  if (!labels)
    return;
  pthread_mutex_destroy(&labels->lock);
  arena_release(&labels->arena);
  FREE_EACH(labels, list.at, list.index.slots);
  free(labels);
}

/* NULL if it is not known. Numbers are hashes themselves, each of one label. */
static const struct label *label_of(const struct path_labels *labels, u32 number) {
  u32 index = HASHED_INDEX(&labels->list, number, one, one->number == number);
  return index == INDEX_NONE ? NULL : &labels->list.at[index];
}

void path_labels_add(struct path_labels *labels, u32 number, const char *text, bool is_kernel) {
  pthread_mutex_lock(&labels->lock);
  if (!label_of(labels, number)) {
    const char *copy = arena_text(&labels->arena, text);
    HASHED_ADD(&labels->list, number, (struct label){number, is_kernel, copy});
  }
  pthread_mutex_unlock(&labels->lock);
}

const char *path_labels_find(struct path_labels *labels, u32 number, bool *is_kernel) {
  pthread_mutex_lock(&labels->lock);
  const struct label *label = label_of(labels, number);
  const char *text = label ? label->text : NULL;
  *is_kernel = label && label->is_kernel;
  pthread_mutex_unlock(&labels->lock);
  return text;
}

static const char *text_of(const struct path_labels *labels, u32 number) {
  static const char *const phases[] = {
      [0] = "host, outside all phases",
#define X(n, v, t) [v] = t,
      TSCOPE_PHASES(X)
#undef X
          [PHASE_CAPTURING] = "capturing a CUDA graph",
  };
  switch (number) {
  case LABEL_LAUNCH_LATENCY:
    return "launched, not begun";
  case LABEL_HOST_GAP:
    return "host, between calls";
  case LABEL_WAKE_UP:
    return "host, waking up";
  case LABEL_NOT_KNOWN:
    return "unknown";
  case LABEL_NOT_RECORDED:
    return "waiting for something not recorded";
  case LABEL_GPU_AWAY:
    return "waiting for a GPU that does nothing of this rank";
  }
  if (number < HOST_KEYS)
    return number < LENGTH_OF(phases) && phases[number] ? phases[number] : "host";
  const struct label *label = label_of(labels, number);
  return label ? label->text : "unknown";
}

const char *path_label_name(struct analysis *a, u32 label, const char **shortened) {
  const struct path_labels *labels = a->graph->labels;
  const char *text = text_of(labels, label);
  const struct label *named = label_of(labels, label);
  const struct kernel *kernel =
      named && named->is_kernel && a->kernel_names ? kernel_lookup(a->kernel_names, text) : NULL;
  const char *whole = arena_text(a->arena, kernel ? kernel->demangled : text);
  *shortened = kernel ? arena_text(a->arena, kernel->shortened) : whole;
  return whole;
}

void path_labels_take(struct analysis *a, bool (*is)(const char *name, const struct kernel *kernel),
                      struct cure *cure) {
  const struct path_labels *labels = a->graph ? a->graph->labels : NULL;
  if (!labels || !a->kernel_names)
    return;
  u32 taken = cure->n;
  struct cure_change *changes =
      arena_array(a->arena, size_sum(taken, labels->list.n), sizeof(*changes));
  for (u32 i = 0; i < taken; i++)
    changes[i] = cure->changes[i];
  FOR_EACH(labels->list.at, labels->list.n, label)
    if (label->is_kernel && is(label->text, kernel_lookup(a->kernel_names, label->text)))
      changes[taken++] =
          (struct cure_change){.kind = CHANGE_NAME, .which = label->number, .of = NODE_KERNEL};
  *cure = (struct cure){changes, taken};
}

struct label_sum {
  u32 label;
  u8 category;
  i64 ns;
  u64 count;
};

ORDER_BY(longer_first, struct label_sum, DOWN(ns) UP(label) UP(category))

typedef HASHED(struct label_sum) label_sums;

/* The same label may name a kernel and a call. */
static void add_to_sums(label_sums *sums, const struct path_segment *segment) {
  u32 index = HASHED_OR_ADD(sums, segment->label, one,
                            one->label == segment->label && one->category == segment->category,
                            ((struct label_sum){SAME(segment, label, category)}));
  sums->at[index].ns += segment->end - segment->start;
  sums->at[index].count++;
}

static void list_sums(struct analysis *a, struct label_sum *sums, u32 n_sums, double steps) {
  struct results *r = a->results;
  SORT(sums, n_sums, longer_first);
  n_sums = MIN(n_sums, LABELS_LISTED);
  r->path_by_name = arena_array(a->arena, n_sums, sizeof(*r->path_by_name));
  FOR_EACH(sums, n_sums, sum) {
    const char *shortened, *name = path_label_name(a, sum->label, &shortened);
    r->path_by_name[r->n_path_by_name++] =
        (struct path_name_result){.name = name,
                                  .category = path_category_name(sum->category),
                                  .shortened = shortened,
                                  .label = sum->label,
                                  .category_id = sum->category,
                                  .ms = ns_to_ms(sum->ns) / steps,
                                  .count = (double)sum->count / steps};
  }
}

/* The path of the first sample from its beginning; the walk went backwards from its end. */
static void list_segments(struct analysis *a, const struct sample_outcome *out) {
  struct results *r = a->results;
  u32 n = MIN(out->segments.n, SEGMENTS_LISTED);
  r->path_segments = arena_array(a->arena, n, sizeof(*r->path_segments));
  i64 origin = n ? out->segments.at[out->segments.n - 1].start : 0;
  for (u32 i = 0; i < n; i++) {
    const struct path_segment *segment = &out->segments.at[out->segments.n - 1 - i];
    const char *shortened, *name = path_label_name(a, segment->label, &shortened);
    r->path_segments[r->n_path_segments++] =
        (struct path_segment_result){.rank = a->model->ranks[segment->rank].rank,
                                     .name = name,
                                     .category = path_category_name(segment->category),
                                     .reached_by = path_edge_name(segment->edge),
                                     .start_ms = ns_to_ms(segment->start - origin),
                                     .ms = ns_to_ms(segment->end - segment->start)};
  }
}

void path_labels_report(struct analysis *a, double steps) {
  const struct graph *graph = a->graph;
  struct results *r = a->results;
  label_sums sums = {0};
  u64 crossed[PATH_EDGES] = {0};
  bool listed = false;
  FOR_EACH(graph->outcomes, graph->n_samples, out) {
    if (!out->valid)
      continue;
    if (!listed)
      list_segments(a, out);
    listed = true;
    FOR_EACH(out->segments.at, out->segments.n, segment)
      add_to_sums(&sums, segment);
    for (u32 k = 0; k < PATH_EDGES; k++)
      crossed[k] += out->crossed[k];
  }
  list_sums(a, sums.at, sums.n, steps);
  FREE_EACH(&sums, at, index.slots);
  r->path_edges = arena_array(a->arena, PATH_EDGES, sizeof(*r->path_edges));
  for (u32 k = 1; k < PATH_EDGES; k++)
    r->path_edges[r->n_path_edges++] =
        (struct path_edge_result){path_edge_name((u8)k), (double)crossed[k] / steps};
}
