/* SPDX-License-Identifier: MIT
 *
 * What is known of the model's modules: a part of struct results. Bytes and milliseconds, NAN where
 * not known. "Plain" is a step on one device without sharding or recomputation.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

#define RESULT_TABLE "analyses/gpu/module_result.def"
#include "analyses/results/result_structs.h"

/* Nothing known. */
struct module_result module_result_unknown(void);
