/* SPDX-License-Identifier: MIT
 *
 * Whether a signal's handler is in progress. It may have interrupted anything: malloc(), for
 * example, under whose lock the C library cannot start a thread.
 */
#pragma once

#include <stdbool.h>

/* Whether the calling thread is in a handler, as far as its stack shows: not if the handler has
 * changed which signals are blocked, nor if it made the call through more than 256 KiB of stack.
 * Asks the kernel up to some thousand times; errno is preserved. */
bool tscope_in_handler(void);
