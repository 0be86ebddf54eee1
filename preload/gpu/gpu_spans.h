/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_GPU_SPANS_H
#define TSCOPE_GPU_SPANS_H

#include "gpu_clock.h"

/* Spans are in nanoseconds, so the threads that deliver them have writers beside their own two. */
struct gpu_thread {
  struct tscope_writer spine;
  struct tscope_writer detail;
};

#endif
