/* SPDX-License-Identifier: MIT
 *
 * The words of the trace's vocabularies (format/enums.def). NULL for a value that has none.
 */
#pragma once

#include "format/tscope_format.h"

const char *op_word(u32 op);
const char *phase_word(u32 phase);
const char *copy_word(u32 direction);
const char *loss_word(u32 reason);
const char *activity_word(u32 activity);
const char *gpu_clock_word(u32 clock);
const char *backend_word(u32 backend);
const char *stall_word(u32 what);
