/* SPDX-License-Identifier: MIT
 *
 * The functions that analyses.def names, and how many rows some of them list.
 */
#pragma once

#include "analyses/analyses.def"
#include "analyses/analysis.h"

enum { KERNELS_LISTED = 100, NAMED_RANGES_LISTED = 100 };

#define A(name, parts) parts
#define STAGE(f) void f(struct analysis *a);
#define PER_RANK(f) void f(struct analysis *a, const struct timeline *timeline);
#define CARRIES(f) void f(struct analysis *a, u32 rank, struct carrier *c);
#define RELEASE(f) void f(struct analysis *a);
TSCOPE_ANALYSES(A, STAGE, PER_RANK, CARRIES, STAGE, RELEASE)
#undef A
#undef STAGE
#undef PER_RANK
#undef CARRIES
#undef RELEASE
