/* SPDX-License-Identifier: MIT
 *
 * What the names of kernels and transports say about collectives.
 */
#ifndef TSCOPE_COLLECTIVE_NAMES_H
#define TSCOPE_COLLECTIVE_NAMES_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* The operation that the name of a collective kernel or transport stands for: 0 if it can be any.
 * NCCL runs all-to-all, gather and scatter as sends and receives; their names give TSCOPE_OP_SEND.
 */
u8 op_of_name(const char *name);

/* Whether a GPU kernel's name is that of a collective. */
bool is_collective_kernel(const char *name);

#endif
