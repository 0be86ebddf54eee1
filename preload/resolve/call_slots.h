/* SPDX-License-Identifier: MIT
 *
 * The slots through which a program calls functions of other libraries.
 */
#pragma once

#include "record/hook.h"

/* Points the slots named `function`, of the program itself and of Python's library, at `ours`. How
 * many there were. What they pointed at before is not returned: look the function up. */
u32 tscope_slots_replace(const char *function, const void *ours);
