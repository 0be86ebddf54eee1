/* SPDX-License-Identifier: MIT
 *
 * What is written of a stall. On the helper.
 */
#pragma once

#include "record/hook.h"

#pragma GCC visibility push(hidden)

/* Why Python's frames cannot be read: "" where there is no Python, NULL where they can. Set before
 * the first stall, by whoever may look up symbols. */
extern const char *stall_python_why;

/* Writes a STALL and, if `whole`, what each thread is in. */
void stall_write(struct tscope_stall_record *stall, enum tscope_stall what, bool whole);

/* Writes which processes of the same parent are stopped or ended, into a stall that goes on. */
void stall_write_peers(u32 stall);

void stall_write_end(u32 stall, u64 ticks);

#pragma GCC visibility pop
