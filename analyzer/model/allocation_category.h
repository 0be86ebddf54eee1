/* SPDX-License-Identifier: MIT
 *
 * What an allocation is for: from its stack (import/memory_snapshot/allocation_categories.def), or
 * from the phase of training that it was made in.
 */
#pragma once

/* C(NAME, "how reports call it"). A phase of training has the category of its name in enums.def. */
#define TSCOPE_ALLOCATION_CATEGORIES(C)                                                            \
  C(CHECKPOINT_RECOMPUTE, "checkpoint recompute")                                                  \
  C(GRADIENT_CLIPPING, "gradient clipping")                                                        \
  C(GRADIENT_BUCKETS, "gradient buckets")                                                          \
  C(GATHERED_PARAMETERS, "gathered parameters")                                                    \
  C(COMMUNICATION, "communication")                                                                \
  C(QUANTISATION, "quantisation")                                                                  \
  C(INPUT, "input")                                                                                \
  C(LOADING_OF_WEIGHTS, "loading of weights")                                                      \
  C(ATTENTION, "attention")                                                                        \
  C(NORM, "norm")                                                                                  \
  C(LOSS, "loss")                                                                                  \
  C(SOFTMAX, "softmax")                                                                            \
  C(EMBEDDING, "embedding")                                                                        \
  C(POSITION, "position")                                                                          \
  C(ACTIVATION, "activation")                                                                      \
  C(DROPOUT, "dropout")                                                                            \
  C(CONVOLUTION, "convolution")                                                                    \
  C(MATRIX_MULTIPLY, "matrix multiply")                                                            \
  C(COPIES_AND_CASTS, "copies and casts")                                                          \
  C(MIXTURE_OF_EXPERTS, "mixture of experts")                                                      \
  C(COMPILED_GRAPH, "compiled graphs")                                                             \
  C(GRADIENTS, "gradients")                                                                        \
  C(ZEROING_OF_GRADIENTS, "zeroing of gradients")                                                  \
  C(DATA, "data")                                                                                  \
  C(FORWARD, "forward")                                                                            \
  C(BACKWARD, "backward")                                                                          \
  C(OPTIMIZER, "optimizer")                                                                        \
  C(ZERO_GRAD, "zero_grad")                                                                        \
  C(USER, "user range")                                                                            \
  /* Not of one allocation: rows of reports. */                                                    \
  C(BEFORE_RECORDING, "before recording")                                                          \
  C(NOT_ATTRIBUTED, "not attributed")                                                              \
  C(ALL_OTHERS, "all others")

enum allocation_category {
  ALLOCATION_UNKNOWN,
#define C(NAME, word) ALLOCATION_##NAME,
  TSCOPE_ALLOCATION_CATEGORIES(C)
#undef C
      ALLOCATION_CATEGORIES
};

/* A constant; NULL for ALLOCATION_UNKNOWN. */
const char *allocation_category_name(enum allocation_category category);
