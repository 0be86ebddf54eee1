/* SPDX-License-Identifier: MIT
 *
 * Facts about device memory: a part of struct results. The figures are those of one device, the one
 * with the highest peak; by_rank has the few that every device has. Bytes unless said otherwise,
 * NAN if not known.
 */
#pragma once

#include <stdbool.h>

#include "analyses/results/words.h"
#include "format/tscope_format.h"
#include "model/allocation_category.h"

enum { MEMORY_CURVE_POINTS = 1000, MEMORY_PIECES = 64, MEMORY_SEGMENTS_DRAWN = 60 };

#define RESULT_TABLE "analyses/memory/memory_result.def"
#include "analyses/results/result_structs.h"

/* Nothing known. */
struct memory_result memory_result_unknown(void);
