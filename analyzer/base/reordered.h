/* SPDX-License-Identifier: MIT */
#pragma once

#include "format/tscope_format.h"

/* Two lists of `n` keys whose first ones differ. If both begin with the same few keys in another
 * order, and then agree to the end, of which there is at least one key: the position behind these
 * few. Else 0: where a list leaves out a key of a sequence that repeats, the rest does not agree.
 */
u32 reordered_until(const u64 *a, const u64 *b, u32 n);
