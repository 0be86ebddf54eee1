/* SPDX-License-Identifier: MIT
 *
 * Files of summaries: what `tscope reduce` keeps of ranks (docs/decisions/reduce.md). A file begins
 * with struct summary_header, then the parts of all ranks, deflated; its table of struct
 * summary_entry is at the end. All integers are little-endian, as the machine has them.
 */
#pragma once

#include "base/carrier.h"
#include "base/vector.h"

#define SUMMARY_SUFFIX ".tscope-summary"
#define SUMMARY_MAGIC "tscosum1"

struct summary_header {
  char magic[8];
  u64 layout; /* see summary_layout() */
  u64 table;  /* offset of the table */
  u32 entries, reserved;
};

struct summary_part {
  u64 offset;
  u32 bytes, whole; /* in the file; inflated */
  u64 hash;         /* of it as it is inflated */
};

struct summary_entry {
  u32 rank, pid;  /* global rank */
  u64 records;    /* of its trace */
  u64 run, start; /* hash of the run's name; when the run began, ns of the wall clock */
  u64 stamp;      /* of the facts that `found` was found beside; 0: nothing was found yet */
  struct summary_part facts, found;
  u32 passes;  /* 2: beside the facts of other nodes */
  u32 settled; /* number of ranks whose facts those were */
  u32 options; /* with which it was found: the stamp of no facts */
  u32 check;   /* CRC-32 of all members before */
};

/* Of one rank, while it is made; parts are deflated. */
struct summary_made {
  struct summary_entry entry;
  u8 *facts, *found;
};

/* What was written by a tscope with other structs cannot be read. */
u64 summary_layout(void);

/* Deflates what a carrier has written. The bytes are the caller's to free. */
u8 *summary_deflate(const struct carrier *written, struct summary_part *part);

/* Writes a file, which appears whole or not at all. 0, or negative errno. */
int summary_write(const char *path, struct summary_made *made, u32 n);

/* The table of a file. 0, or negative errno with a line in `why` that follows the file's name. */
int summary_list(const char *path, struct summary_entry **entries, u32 *n, char *why,
                 size_t why_bytes);

/* A part as it was before it was deflated, in the arena; NULL where the file is damaged, or gone.
 */
const u8 *summary_read(const char *path, const struct summary_part *part, struct arena *arena);

/* A part as it is in the file, to be freed; NULL likewise. */
u8 *summary_copy(const char *path, const struct summary_part *part);
