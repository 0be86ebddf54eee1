/* SPDX-License-Identifier: MIT
 *
 * From whatever the command line names to one model: files are recognised by inputs.def, and each
 * kind adds its facts to the model. A model of inputs without timelines has no ranks; the facts in
 * it (model.h) have their own.
 */
#pragma once

#include "base/arena.h"
#include "import/inputs.def"
#include "model/model.h"

#define INPUT_HEAD_BYTES 65536u
#define INPUT_HEAD_PADDING 16u /* zeroes behind them */

/* One file. Strings live in the model's arena. */
struct input {
  const char *path;
  const char *name;   /* last part of the path */
  u64 bytes;          /* on disk */
  u64 device, number; /* of the file: two paths may lead to one */
  bool gzip;          /* the file is compressed; `head` is not */
  bool given;         /* named on the command line, not found in a folder that was */
  /* The first bytes and zeroes behind them; only while the file is being probed. */
  const u8 *head;
  u32 head_bytes;
};

/* What a loader works on. */
struct import {
  struct model *model; /* may hold what earlier kinds brought */
  struct arena *arena; /* the model's */
  const struct model_options *options;
  char *why; /* for one line: what is wrong and what to do about it */
  size_t why_bytes;
  u32 used;   /* of the files, those that the report is made from; 0: all */
  bool noted; /* `why` is a note of the model */
};

typedef bool input_probe(const struct input *input);

/* The note on a file that cannot be read: its path, and what is wrong, which follows its name. */
#define IS_LEFT_OUT "%s %s; it is left out"

/* Makes that note in the model, and `why` in case no other file can be read. */
void import_leave_out(struct import *import, const char *path, const char *what);

/* Adds the facts of the files of one kind; n > 0, sorted by path. Only if no file is usable:
 * negative errno and `why`; then the report is made from the other kinds of input. */
typedef int input_load(struct import *import, const struct input *inputs, u32 n);

#define K(id, one, several, contains)                                                              \
  input_probe probe_##id;                                                                          \
  input_load load_##id;
TSCOPE_INPUTS(K)
#undef K

/* What to do where there is nothing at a path, and where there are no traces. */
#define GIVE_THE_DIRECTORY "Give the directory the job wrote to (TSCOPE_DIR)."
#define WAS_IT_RUN "Was the job run with tscope run, or libtscope.so preloaded, and did it train?"

/* Reads files and folders (and folders in those) into a model the caller frees with
 * model_free(). 0, or negative errno with a one-line reason and remedy in `why`. */
int import_load(const char *const *paths, u32 n, const struct model_options *options,
                struct model **model, char *why, size_t why_bytes);

/* The rank in a file's name: the number after "rank" (rank3, rank_3, rank-3), else the last number
 * of the name without its extensions (_dump_12, node7_12). INDEX_NONE if there is none. */
u32 rank_of_name(const char *name);

/* The same, but only if the name says "rank": a number is often a date, a size or a step. */
u32 rank_said_by_name(const char *name);

/* Where the number after the last "rank" of a name begins; NULL. */
const char *digits_after_rank(const char *name);

/* Whether `word` is in the first bytes of a file, which may hold zeroes. */
bool head_has(const struct input *input, const char *word);

/* Where more than `most` steps were found (0: as many as there are) and yet no times are left out:
 * a line on standard error that says so, in the name of a program. */
void import_tell_times_kept(const struct model *model, u32 most, const char *program);
