/* SPDX-License-Identifier: MIT
 *
 * How much memory and time each module of a model needs in one training step on one device, without
 * sharding or recomputation. The figures come from PyTorch's memory tracker and runtime estimator,
 * through scripts/export_modules.py. Bytes and milliseconds, NAN if not given.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

struct module_stat {
  const char *name; /* full, such as "Transformer.layers.0.attention" */
  u32 parent;       /* index of the nearest module above with statistics; INDEX_NONE */
  u32 depth;        /* modules above it */
  bool leaf;        /* no module below it has statistics */
  double parameters, gradients;
  double gradients_so_far; /* of all modules whose backward pass came before, without this one's */
  double activations_forward;  /* kept by its forward pass, without input and output */
  double activation_gradients; /* made in its backward pass, at the peak */
  double activations_so_far;   /* when its forward pass is done */
  double input, output;
  double forward_ms, backward_ms; /* modules below it included */
};

/* In the order of the forward pass; the root first. */
struct module_tree {
  const char *path;
  struct module_stat *at;
  u32 n;
};
