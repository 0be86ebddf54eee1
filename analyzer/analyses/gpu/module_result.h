/* SPDX-License-Identifier: MIT
 *
 * What is known of the model's modules: a part of struct results. Bytes and milliseconds, NAN where
 * not known. "Plain" is a step on one device without sharding or recomputation.
 */
#ifndef TSCOPE_MODULE_RESULT_H
#define TSCOPE_MODULE_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"

struct module_row {
  const char *name, *parent; /* NULL: it is a root */
  double depth;
  bool leaf;
  double parameter_bytes, gradient_bytes, activation_bytes;
  double gradients_so_far_bytes, activations_so_far_bytes, activation_gradient_bytes;
  double forward_ms, backward_ms;
  double plain_peak_bytes; /* while its backward pass runs: see docs/analysis.md */
  double time_share;       /* of the root's */
};

struct module_result {
  const char *reason; /* why nothing is known, NULL if something is */
  const char *path;
  const char *root;
  double count;
  double parameter_bytes;  /* of the root */
  double plain_peak_bytes; /* largest over modules */
  const char *plain_peak_module;
  double forward_ms, backward_ms, plain_time_ms; /* of the root; the last is their sum */
  struct module_row *tree;                       /* in the order of the forward pass */
  u32 n_tree;
};

/* Nothing known. */
struct module_result module_result_unknown(void);

#endif
