/* SPDX-License-Identifier: MIT
 *
 * Which kernels one call of an operator launches, directly or through the operators that it calls,
 * in the order in which the kernels began. Calls that launched the same kernels in the same order
 * are one sequence.
 */
#pragma once

#include <stdbool.h>

#include "base/hash_index.h"
#include "kernels/kernels.h"

enum {
  SEQUENCE_KERNELS = 24,    /* of one sequence that are kept; it may have more */
  SEQUENCES_MOST = 1 << 14, /* different ones; further ones are left out */
};

struct operator_sequence {
  u64 key;      /* of operator, kernels and their order */
  u32 operator; /* any number by which the caller distinguishes operators */
  u32 n;
  const struct kernel *kernels[SEQUENCE_KERNELS];
  u64 hash;  /* of all its kernels, the same on all ranks */
  u64 count; /* of calls */
  i64 ns;    /* that their kernels ran */
};

/* By key. {0} is an empty one. */
struct operator_sequences {
  HASHED(struct operator_sequence) list;
};

void operator_sequences_free(struct operator_sequences *sequences);

/* The sequence with that key; a new one has only its key, and 0 in all other fields. NULL if there
 * are too many. */
struct operator_sequence *operator_sequence_at(struct operator_sequences *sequences, u64 key);

/* The kernels of one call. {0} where there are none yet. */
struct operator_call {
  u64 hash; /* of their names, in order */
  u32 n;
  bool first; /* of its sequence; the sequence has those kernels */
  i64 ns;
};

void operator_call_add(struct operator_call *call, const struct kernel *kernel, i64 ns);
u64 operator_call_key(const struct operator_call *call, u32 operator);
