/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_KERNEL_TIMES_H
#define TSCOPE_KERNEL_TIMES_H

#include "analyses/analysis.h"
#include "kernels/kernels.h"

/* What ran on the device, by its name; else in words for its kind. NULL when out of memory. */
const struct kernel *kernel_of_span(const struct analysis *a, const struct timeline *timeline,
                                    const struct span *span);

/* Whether it is work of a GPU that is in all sums: collectives of CPU backends are not, nor what
 * ran before all that was beside it is known. */
bool is_summed(const struct analysis *a, const struct timeline *timeline, const struct span *span);

/* Of work on the device: the kind of the span says more than the name, where it says anything. */
unsigned category_of_work(const struct kernel *kernel, u8 span_kind);

#endif
