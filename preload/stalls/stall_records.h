/* SPDX-License-Identifier: MIT
 *
 * What is written of a stall. On the helper.
 */
#pragma once

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Writes a STALL and, if `whole`, what each thread is in. */
void stall_write(struct tscope_stall_record *stall, enum tscope_stall what, bool whole);

/* Writes which processes of the same parent are stopped or ended, into a stall that goes on. */
void stall_write_peers(u32 stall);

void stall_write_end(u32 stall, u64 ticks);

#pragma GCC visibility pop
