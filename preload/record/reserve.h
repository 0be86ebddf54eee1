/* SPDX-License-Identifier: MIT
 *
 * Memory that is reserved at once, and used bit by bit. The kernel gives pages only when they are
 * used. Two things that a job may do would make it give all: mlockall(MCL_FUTURE), and a core dump
 * of a mapping that has no name. The reserve is left out of both.
 */
#pragma once

#include <stddef.h>

/* Memory of the process alone if `fd` is -1, else the file, of which `bytes` may be more than there
 * is. MAP_FAILED with errno if there is none. */
void *tscope_reserve_map(int fd, size_t bytes);
