/* SPDX-License-Identifier: MIT
 *
 * How much memory tensors hold, by device, as PyTorch's allocators say.
 */
#ifndef TSCOPE_TENSOR_MEMORY_H
#define TSCOPE_TENSOR_MEMORY_H

#include "record/hook.h"

/* Writes a MEMORY record for each device whose totals changed since the one before. */
void tensor_memory_tell(struct tscope_thread *thread);

#endif
