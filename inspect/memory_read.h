/* SPDX-License-Identifier: MIT
 *
 * Reading memory that may not be there: the kernel reads it, so that a bad address gives an error
 * and no fault.
 */
#pragma once

#include <sys/types.h>

#include "format/tscope_format.h"

/* Copies `bytes` from `address` in the process `pid`, which may be the caller's own. 0; -EFAULT
 * if not all of them are there; another negative errno if the kernel does not allow it.
 * Preserves errno. */
int tscope_read_memory(pid_t pid, u64 address, void *to, size_t bytes);
