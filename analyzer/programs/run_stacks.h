/* SPDX-License-Identifier: MIT
 *
 * What the ranks of a run are doing now: asked, looked at from outside, or from their own record.
 */
#pragma once

#include "attach/native_stacks.h"
#include "base/arena.h"
#include "model/model.h"
#include "model/stalls.h"

/* Why a rank did not answer itself. */
enum silence {
  SILENCE_NONE, /* it did */
  SILENCE_UNKNOWN,
  SILENCE_ENDED,
  SILENCE_NOT_ASKED,
  SILENCE_STOPPED,
  SILENCE_DIED,
  SILENCE_DEVICE, /* its first thread waits for a device */
};

/* One process, by its rank or its number. */
struct process_stacks {
  u32 number;
  const char *source; /* "now", "from its own record", ... */
  enum silence silence;
  const char *host;    /* of a rank */
  const char *refused; /* why it was not read from outside although it runs here; NULL */
  struct rank_stall stacks;
  struct native_outcome native;
};

/* A rank of which nothing is known now. */
struct silent_rank {
  u32 rank;
  enum silence silence;
  const char *host;
};

struct run_stacks {
  struct process_stacks *at;
  u32 n;
  struct silent_rank *silent;
  u32 n_silent;
  const char *not_asked; /* why no rank was asked; NULL */
  struct model *model;   /* what some of it is from; NULL. Free it with model_free(). */
};

struct run_request {
  const char *path; /* with traces; the newest run there is taken */
  enum native_which which;
  double wait_s; /* how long ranks that may still answer are waited for */
};

/* Everything lives in the arena. 0; a negative errno, with a line in `why`. */
int run_stacks_get(struct arena *arena, const struct run_request *request, struct run_stacks *run,
                   char *why, size_t why_bytes);

/* In words, to follow a rank and its host. */
const char *silence_text(enum silence silence);
