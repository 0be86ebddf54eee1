/* SPDX-License-Identifier: MIT
 *
 * What names of kernels and transports tell of collectives.
 */
#ifndef TSCOPE_COLLECTIVE_NAMES_H
#define TSCOPE_COLLECTIVE_NAMES_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* Which operation a collective kernel's or transport's name tells of: 0 when it can be any. NCCL
 * runs all-to-all, gather and scatter as sends and receives; those say TSCOPE_OP_SEND. */
u8 op_of_name(const char *name);

/* Whether a GPU kernel's name is that of a collective. */
bool is_collective_kernel(const char *name);

#endif
