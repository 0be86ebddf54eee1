/* SPDX-License-Identifier: MIT
 *
 * What an API family (NCCL, CUDA runtime, GPU clock, PyTorch, ...) does at each point in the life
 * of the shim. The table of families is in families.c; each member may be NULL.
 */
#ifndef TSCOPE_FAMILIES_H
#define TSCOPE_FAMILIES_H

#include "record/hook.h"

/* Index of a family's slot in tscope_thread.family[]. */
enum tscope_family_slot {
  TSCOPE_FAMILY_CUDA,
  TSCOPE_FAMILY_NCCL,
  TSCOPE_FAMILY_GPU,
  TSCOPE_FAMILY_TORCH,
  TSCOPE_FAMILY_API,
  TSCOPE_FAMILY_NVTX,
  TSCOPE_FAMILY_STDOUT_SCALARS,
  TSCOPE_FAMILY_HOOKED_SYMBOLS,
  TSCOPE_FAMILY_CALL_SITES,
  TSCOPE_FAMILY_STALLS,
  TSCOPE_FAMILY_STACK_REQUESTS,
  TSCOPE_FAMILY_LINE_SAMPLES,
  TSCOPE_FAMILY_SLOTS
};

struct tscope_family {
  const char *name;
  size_t thread_bytes;                        /* zeroed memory for each thread's slot, 0 for none */
  void (*wake)(struct tscope_thread *thread); /* once, on the thread that woke the process */
  void (*tick)(struct tscope_thread *thread); /* on a thread of its own, about every 100 ms */
  void (*watch)(void); /* on the helper, about every 100 ms; must never wait */
  /* On the helper, as often as it asks for: returns when it wants to be called again, by
   * CLOCK_MONOTONIC. `cpu_ns`: the helper's CPU time when it began to sleep. */
  u64 (*look)(bool own_descriptors, u64 cpu_ns);
  void (*end)(struct tscope_thread *thread); /* once, at orderly process end */
};

extern const struct tscope_family *const tscope_families[TSCOPE_FAMILY_SLOTS];

#endif
