/* SPDX-License-Identifier: MIT
 *
 * Converts the events of one rank, in true time, into that rank's trace file, in local time, and
 * sums up their truth.
 */
#pragma once

#include "schedule.h"

struct rank_file;

/* Returns NULL without memory. `truth` is filled in while the schedule is walked. */
struct rank_file *rank_file_new(const struct tracegen_options *options, struct tracegen_rank *truth,
                                u32 rank);

/* Begins a new step. last_start[bucket * islands + island] is the arrival of the last rank at that
 * collective. */
void rank_file_step(struct rank_file *file, const u64 *last_start);

const struct emitter *rank_file_emitter(struct rank_file *file);
int rank_file_save(struct rank_file *file, const char *folder, u64 end);
void rank_file_free(struct rank_file *file);
