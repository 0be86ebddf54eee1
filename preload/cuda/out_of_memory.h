/* SPDX-License-Identifier: MIT
 *
 * Allocations that failed in the CUDA runtime or the driver.
 */
#pragma once

#include "record/hook.h"

/* Writes an OUT_OF_MEMORY record of a call that began at `start` (raw ticks) and requested `bytes`.
 * Queries the driver how much is free, which does not change the job's last error; errno is
 * preserved. */
TSCOPE_NOINLINE void out_of_memory(struct tscope_thread *thread, u64 start,
                                   enum tscope_memory memory, u64 bytes);
