/* SPDX-License-Identifier: MIT
 *
 * How much memory tensors use, by device, according to PyTorch's allocators.
 */
#pragma once

#include "record/hook.h"

/* Writes a MEMORY record for each device whose totals changed since the one before. */
void tensor_memory_record(struct tscope_thread *thread);
