/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyses/analysis.h"
#include "kernels/kernels.h"

/* The name of what ran on the device, or a word for its kind. */
const struct kernel *kernel_of_span(const struct analysis *a, const struct timeline *timeline,
                                    const struct span *span);

/* Whether it is GPU work that counts in all sums. Collectives of CPU backends do not, nor does work
 * from the time in which not all other work is known. */
bool is_counted_work(const struct analysis *a, const struct timeline *timeline,
                     const struct span *span);

/* Whether operators of the framework are recorded of this rank. */
static inline bool has_operators(const struct analysis *a, u32 rank) {
  return a->ranks[rank].spans[SPAN_OP] > 0;
}

/* Adds what ran on ranks without operators, summed by kernel. 0, or the first error of `add`. */
void kernel_times_without_operators(struct analysis *a, void (*add)(struct operator_sums *sums,
                                                                    const struct kernel *kernel,
                                                                    u8 kind, i64 ns, u64 count));

/* The category of work on the device. If the kind of the span says something, it counts more than
 * the name. */
unsigned category_of_work(const struct kernel *kernel, u8 span_kind);

/* All that ran of a category; NULL if nothing did. */
const struct kernel_category_result *find_category(const struct results *r,
                                                   enum kernel_category kind);
