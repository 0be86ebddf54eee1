/* SPDX-License-Identifier: MIT
 *
 * An NCCL of a few functions that recognises communicators of another copy.
 */
#pragma once

#include <nccl.h>

/* Calls that arrived here with a communicator of another copy. */
unsigned long fake_nccl_foreign_calls(void);

/* Reductions that arrived here. */
unsigned long fake_nccl_all_reduces(void);
