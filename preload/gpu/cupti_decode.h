/* SPDX-License-Identifier: MIT
 *
 * Reads CUPTI activity records by what all versions have in common. NVIDIA only ever appends
 * fields, so a field exists if the record is long enough to hold it.
 */
#pragma once

#include "gpu/gpu_clock.h"

enum cupti_kind {
  CUPTI_WORK,     /* the GPU did something: see `span` */
  CUPTI_OVERHEAD, /* CUPTI worked for itself */
};

struct cupti_record {
  enum cupti_kind kind;
  struct gpu_span span; /* when; of work: what */
  u32 type;             /* of overhead: enum tscope_gpu_overhead */
};

/* Reads one record of `bytes` bytes. False if its kind is not wanted or it is too short. Names
 * point into CUPTI's memory. */
bool cupti_decode(const void *record, size_t bytes, struct cupti_record *out);
