/* SPDX-License-Identifier: MIT
 *
 * Names on the critical path.
 */
#pragma once

#include "analyses/path/path_graph.h"

/* Labels below HOST_KEYS are phases. The following ones are for things that have no name in a
 * trace; all others are hashes of names. */
enum path_label {
  LABEL_LAUNCH_LATENCY = 0xfffffff0u,
  LABEL_HOST_GAP,
  LABEL_WAKE_UP,
  LABEL_NOT_KNOWN,
  LABEL_NOT_RECORDED,
  LABEL_GPU_AWAY,
};

void path_labels_new(struct path_labels **labels);
void path_labels_free(struct path_labels *labels);

/* From several threads at once; `is_kernel`: the name of a kernel. */
void path_labels_add(struct path_labels *labels, u32 number, const char *text, bool is_kernel);

/* NULL if it is not known, or needs no text. */
const char *path_labels_find(struct path_labels *labels, u32 number, bool *is_kernel);

/* What the sampled paths are made of, by name, and what they crossed. */
void path_labels_report(struct analysis *a, double steps);

/* A label in words: whole, and shortened for people. In the analysis' arena. */
const char *path_label_name(struct analysis *a, u32 label, const char **shortened);

/* Adds a change that takes away all kernels that `is` says are meant. In the analysis' arena. */
struct kernel;
void path_labels_take(struct analysis *a, bool (*is)(const char *name, const struct kernel *kernel),
                      struct cure *cure);

const char *path_category_name(u8 category);
const char *path_edge_name(u8 edge);
