/* SPDX-License-Identifier: MIT
 *
 * PyTorch's flight recorder: what each rank's process groups were doing, dumped when a collective
 * timed out, as a pickle or as JSON. Format versions 2.x.
 */
#pragma once

#include "base/hash.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "import/value_build.h"
#include "model/flight_record.h"

/* What is known from the dumps read so far. Ranks are global ranks until all are known. */
struct draft {
  struct arena *arena;                /* of what remains */
  struct value_builder texts;         /* in that arena; each text once */
  HASHED(struct flight_group) groups; /* members ascend; none if they are not known */
  HASHED(const struct flight_stack *) stacks;
  VECTOR(struct flight_call) calls;
  VECTOR(struct flight_progress) progress;
  VECTOR(struct flight_rank) ranks;
  const char *version;
};

/* A group as the pg_config of one dump describes it. */
struct dump_group {
  const char *name;
  u32 group;  /* index into draft.groups */
  i64 number; /* its pg_id, the number that pg_status and the entries use for it; -1 not known */
};

typedef VECTOR(struct dump_group) dump_groups;

/* A copy of a dump's text that stays valid after the dump is freed. NULL of NULL. */
const char *draft_keep_text(struct draft *draft, const char *text, size_t n);

/* dump_groups.c */
int dump_groups_read(struct draft *draft, const struct value *root, dump_groups *groups);
/* Keeps the first `n` groups of the draft. */
void dump_groups_cut(struct draft *draft, u32 n);
/* The group that an entry names; a new one with unknown members if pg_config does not have it. */
u32 dump_group_find(struct draft *draft, dump_groups *groups, const char *name, const char *desc);
void dump_progress_read(struct draft *draft, const struct value *root, u32 rank,
                        dump_groups *groups);

/* dump_entries.c: the calls of one rank, in the order they were made */
void dump_entries_read(struct draft *draft, const struct value *root, u32 rank,
                       dump_groups *groups);

/* dump_names.c */

/* The ranks that a file's name may mean: its last number, or the number after "rank". */
struct name_ranks {
  u32 at[4];
  u32 n;
};

void dump_name_ranks(const char *name, struct name_ranks *ranks);

/* The host in a file's name before its rank, such as node7 in node7_trace_rank_3; NULL if there
 * is none. In the draft's arena. */
const char *dump_name_host(struct draft *draft, const char *name);
