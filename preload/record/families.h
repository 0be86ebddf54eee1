/* SPDX-License-Identifier: MIT
 *
 * What an API family (NCCL, CUDA runtime, GPU clock, PyTorch, ...) does at each point in the life
 * of the shim. Each member may be NULL.
 */
#pragma once

#include "record/hook.h"

/* X(SLOT, name): TSCOPE_FAMILY_SLOT is its index in tscope_thread.family[], and
 * tscope_<name>_family its struct, in its own folder. */
#define TSCOPE_FAMILIES(X)                                                                         \
  X(CUDA, cuda)                                                                                    \
  X(NCCL, nccl)                                                                                    \
  X(GPU, gpu)                                                                                      \
  X(TORCH, torch)                                                                                  \
  X(API, api)                                                                                      \
  X(NVTX, nvtx)                                                                                    \
  X(STDOUT_SCALARS, stdout_scalars)                                                                \
  X(HOOKED_SYMBOLS, hooked_symbols)                                                                \
  X(CALL_SITES, call_sites)                                                                        \
  X(STALLS, stalls)                                                                                \
  X(STACK_REQUESTS, stack_requests)                                                                \
  X(LINE_SAMPLES, line_samples)

#define TSCOPE_FAMILY_SLOT(SLOT, name) TSCOPE_FAMILY_##SLOT,
enum tscope_family_slot { TSCOPE_FAMILIES(TSCOPE_FAMILY_SLOT) TSCOPE_FAMILY_SLOTS };

struct tscope_family {
  size_t thread_bytes;                        /* zeroed memory for each thread's slot, 0 for none */
  void (*wake)(struct tscope_thread *thread); /* once, on the thread that woke the process */
  void (*tick)(struct tscope_thread *thread); /* on a thread of its own, each tick */
  void (*watch)(void);                        /* on the helper, each tick; must never wait */
  /* On the helper, as often as it asks for: returns when it wants to be called again, by
   * CLOCK_MONOTONIC. `cpu_ns`: the helper's CPU time when it began to sleep. */
  u64 (*look)(bool own_descriptors, u64 cpu_ns);
  /* A step of the job has ended, on this thread of it, so many by then (job_steps.h); `first`: what
   * shows steps has shown none before. */
  void (*step_ended)(struct tscope_thread *thread, u32 steps, bool first);
  void (*end)(struct tscope_thread *thread); /* once, at orderly process end */
};

extern const struct tscope_family *const tscope_families[TSCOPE_FAMILY_SLOTS];

/* The number of the present stall in this process, for families that add to it what they know about
 * the job; 0 while the job moves. Set by the watchdog, read by any thread. */
extern u32 tscope_stall_now;

/* For each slot `i` whose family is in this program and has this member. */
#define TSCOPE_FOR_EACH_FAMILY(i, member)                                                          \
  for (int i = 0; i < TSCOPE_FAMILY_SLOTS; i++)                                                    \
    if (tscope_families[i] && tscope_families[i]->member)
