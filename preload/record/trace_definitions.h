/* SPDX-License-Identifier: MIT
 *
 * Records about the whole process (definitions, facts, anchors, totals) and the table of interned
 * strings. They are written as thread 0, into a part of the retained records that is reserved for
 * them, under a lock that no event ever takes.
 */
#pragma once

#include "record/hook.h"

/* 0 or a negative errno. */
int tscope_definitions_init(void);

/* Writes one whole record with the present time; fills in its header. */
bool tscope_definitions_write(u8 type, u16 tag, void *record, u32 bytes);

/* One SCHEMA record for each record type. */
void tscope_definitions_write_schema(void);

/* A THREAD record: thread `number` is the kernel's thread `tid` from now on. */
void tscope_definitions_write_thread(u32 number, u32 tid, const char *name);

/* Says once in the trace what of something is not recorded. `said` is false at first. */
static inline void tscope_say_once(bool *said, const char *what, const char *of) {
  if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
    tscope_info(NULL, TSCOPE_INFO_FEATURE, what, of);
}
