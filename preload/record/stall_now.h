/* SPDX-License-Identifier: MIT
 *
 * The present stall, for code that adds to it what it knows about the job.
 */
#ifndef TSCOPE_STALL_NOW_H
#define TSCOPE_STALL_NOW_H

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Its number in this process; 0 while the job moves. Set by the watchdog, read by any thread. */
extern u32 tscope_stall_now;

#pragma GCC visibility pop

#endif
