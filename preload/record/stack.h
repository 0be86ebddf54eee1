/* SPDX-License-Identifier: MIT
 *
 * Which stack a hook is on. A hook in progress can only be distinguished from one that was left,
 * by a longjmp or an exception, where it is known whether both are on the thread's own stack:
 * signal handlers and coroutines have others.
 */
#ifndef TSCOPE_STACK_H
#define TSCOPE_STACK_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* The calling thread begins to record. Its own stack is what it is on now. */
void tscope_stack_begin(struct tscope_stack *stack);

/* Finds how far the stacks reach that have begun since the last time; on the helper. */
void tscope_stacks_find(void);

#pragma GCC visibility pop

#endif
