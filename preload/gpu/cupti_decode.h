/* SPDX-License-Identifier: MIT
 *
 * CUPTI activity records, read by what all versions have in common: NVIDIA only ever appends to
 * them, so a field is there if the record is long enough to hold it.
 */
#ifndef TSCOPE_CUPTI_DECODE_H
#define TSCOPE_CUPTI_DECODE_H

#include "gpu_clock.h"

/* Reads one record of `bytes` bytes. False when it is of a kind that is not asked for, or too
 * short. Names point into CUPTI's memory. */
bool cupti_decode(const void *record, size_t bytes, struct gpu_span *span);

#endif
