/* SPDX-License-Identifier: MIT
 *
 * Which stack a hook is on. A hook in progress can be distinguished from one that was left, by a
 * longjmp or an exception, only if it is known whether both are on the thread's own stack: signal
 * handlers and coroutines have other stacks.
 */
#pragma once

#include "record/hook.h"

/* The calling thread begins to record, on whichever stack. */
void tscope_stack_begin(struct tscope_stack *stack);

/* Whether a frame is on the thread's own stack, as far as that is known: not on a coroutine's, nor
 * on a signal handler's. */
bool tscope_stack_has(const struct tscope_thread *thread, const char *frame);

/* Finds the extent of the stacks that are new since the last call; on the helper. */
void tscope_stacks_find(void);
