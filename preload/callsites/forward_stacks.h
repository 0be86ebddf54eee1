/* SPDX-License-Identifier: MIT
 *
 * Where operators of the forward pass were called, for the threads that run their backward.
 * Autograd's threads have no Python frames, but each operator of the backward pass has the number
 * that its forward operator got. A hash of the number decides which operators are sampled, so both
 * passes sample the same ones.
 */
#pragma once

#include "record/hook.h"

/* The stack of an operator that was noted, but whose stack is not known. */
#define FORWARD_STACK_NONE 1u

/* Makes the table. False without memory. */
bool forward_stacks_init(void);

/* Notes the stack of the operator `key`. Of operators that share a slot, the newest is kept. From
 * any thread. */
void forward_stack_put(u64 key, u64 stack);

/* 0 where the operator is not there. From any thread. */
u64 forward_stack_get(u64 key);

/* Whether one of `one_in` operators, a power of two, is this one. */
static inline bool forward_is_sampled(u64 key, u32 one_in) {
  return ((u32)(key >> 32) & (one_in - 1)) == 0;
}
