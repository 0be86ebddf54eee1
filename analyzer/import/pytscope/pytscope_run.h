/* SPDX-License-Identifier: MIT
 *
 * What pytscope 0.2 writes of a rank: steps.jsonl, a record a step, and beside it run.json, which
 * says whose run it is. A record's timestamp is the wall clock when its step was over (RunStore and
 * StepRecord of that version); its phases are seconds of the host.
 */
#pragma once

#include "base/arena.h"
#include "base/vector.h"
#include "import/scalars/scalar_log.h"
#include "model/phase_times.h"

struct pytscope_step {
  i64 end; /* ns of CLOCK_REALTIME */
  u64 number;
  i64 kinds[PHASE_KINDS]; /* ns by enum tscope_phase; NS_UNKNOWN where the record has none */
  i64 attributed;         /* ns of all its phases, others among them; NS_UNKNOWN likewise */
};

struct pytscope_run {
  const char *path; /* of steps.jsonl */
  u32 rank, world_size;
  bool rank_known;                  /* by run.json or the name of the folder */
  bool described;                   /* there is a run.json that can be read */
  const char *python, *torch, *gpu; /* NULL where it does not say */
  VECTOR(struct pytscope_step) steps;
  u64 unreadable_lines;     /* that are no record */
  struct scalar_log values; /* that the program logged */
  u32 earlier;              /* records before the last stretch in which numbers and times go on */
};

/* A use_bytes() (read_values.h) of steps.jsonl, into a run whose path and values.arena are set;
 * reads run.json, too. Strings live in the arena. pytscope_run_free() also after an error. */
int pytscope_run_read(void *run, char *bytes, size_t n, char *why, size_t why_bytes);
void pytscope_run_free(struct pytscope_run *run);
