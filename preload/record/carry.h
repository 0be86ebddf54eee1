/* SPDX-License-Identifier: MIT
 *
 * Where a store into the mapped trace file could end the job (a full btrfs, a quota, a server that
 * is gone), the job's threads write into memory with the layout of the file, and the helper carries
 * what is new to the file every 100 ms by pwrite(), whose errors are ordinary: the memory is kept
 * until it was carried, and the file does not grow meanwhile. Memory of chunks that are full and
 * carried goes back to the system. In a trace that is mapped, only tscope_carry() does something:
 * it looks whether the file is still there.
 */
#pragma once

#include "record/hook.h"

/* Memory in place of a mapping of the file; MAP_FAILED with errno if there is none. */
void *tscope_carry_map(size_t bytes, u32 chunks_max);

/* A writer begins to fill a chunk, and has filled it. */
void tscope_carry_begun(u32 chunk);
void tscope_carry_filled(u32 chunk);

/* Takes a filled ring chunk to fill it again; its header is as it was. False while it is being
 * carried. */
bool tscope_carry_take_back(u32 chunk);

/* `committed` of a chunk, which may have left the memory. */
u64 tscope_carry_committed(u32 chunk);

/* Whether the last attempt to carry succeeded. */
bool tscope_carry_succeeds(void);

/* Carries what is new; every tick, on the helper. */
void tscope_carry(void);

/* The same if more than 4 MiB wait; whenever the helper wakes. */
void tscope_carry_early(void);

/* The same for the last time, on a thread that ends the process. What cannot be carried is counted
 * as lost, and tscope_carry_tell() says so. errno is preserved. */
void tscope_carry_last(void);

/* Says once that the file cannot be written; turns tscope off if it was cut or removed. On a thread
 * that has the job's standard error. */
void tscope_carry_tell(void);
