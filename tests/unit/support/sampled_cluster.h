/* SPDX-License-Identifier: MIT
 *
 * Samples of lines for a cluster (analyse_cluster.h).
 */
#pragma once

#include "analyse_cluster.h"

/* In each step, each rank is at train.py:20 (log) for `slow`[step * ranks + rank], of which it is
 * `other` at line 40 (check); then at line 10 for 300 ms; then it waits at line 30. A look every
 * `apart`, from 5 ms on or, with a seed, from a random moment on. */
void cluster_sample(struct cluster *c, const i64 *slow, i64 other, i64 apart, u32 seed);

/* A cluster whose ranks are late by `late` before each step's work, which varies by `noise`, and at
 * line 20 for as long as in `seen`; a look each 10 ms. */
struct cluster *cluster_late(u32 steps, u32 ranks, double noise, const i64 *late, const i64 *seen,
                             u32 seed);

/* After cluster_sample(): where ranks are slow they are at the lines of the function `inner` in
 * turn, called at line 100 by `outer`, which does nothing else. */
void cluster_call_function(struct cluster *c, const char *inner, const char *outer);

/* After cluster_sample(): all are always at line 20, which is called at line 40 where ranks are
 * slow and else at line 10. */
void cluster_call_twice(struct cluster *c);

/* After cluster_sample(): where the thread is at line 20 it waits for the GIL, which another one
 * holds meanwhile, at line 40. */
void cluster_hold_gil(struct cluster *c);

/* After cluster_sample(): where the thread is at line 10 (`stack` 0) or 20 (1), it has called a
 * function of an installed package. */
void cluster_call_library(struct cluster *c, u32 stack, const char *file, const char *function);
