/* SPDX-License-Identifier: MIT
 *
 * Libraries with more than one copy in the process: PyTorch's NCCL and another that a program
 * loads by its path, the CUDA runtime of two frameworks. A handle of the one means nothing to
 * the other, so no call and no query may reach a copy that its caller did not mean. A library is
 * known by its list of sonames.
 */
#pragma once

#include "record/hook.h"

/* Puts `real`, which a look-up by name found, behind the wrapper that look-ups of `symbol` are
 * answered with. False if the wrapper must not be returned: it already forwards to another
 * function, or look-ups lead to another copy of the library. Preserves errno. */
bool tscope_copy_bind(struct tscope_symbol *symbol, void *real);

/* Finds out, at the linker, which functions that were found for one caller are the same for all: a
 * library that was loaded RTLD_GLOBAL. Called by the poller; makes later calls cheaper. */
void tscope_copies_settle(void);

/* The file of the copy that contains `address`, NULL if that copy is not known. */
const char *tscope_copy_path(const struct tscope_symbol *symbol, const void *address);
