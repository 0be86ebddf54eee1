/* SPDX-License-Identifier: MIT
 *
 * Records that could not be kept, counted by reason in the trace's header; see tscope_lose().
 */
#ifndef TSCOPE_LOSSES_H
#define TSCOPE_LOSSES_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Moves what was lost before there was a trace into it. */
void tscope_lose_early(void);

#pragma GCC visibility pop

#endif
