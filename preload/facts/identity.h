/* SPDX-License-Identifier: MIT
 *
 * Which process of which run this is, according to its launcher.
 */
#pragma once

#include "facts/file_name.h"
#include "record/hook.h"

struct tscope_identity {
  u32 rank;             /* TSCOPE_UNKNOWN_RANK where the launcher says none */
  u32 local_rank;       /* likewise */
  u32 world_size;       /* 0 where the launcher says none */
  const char *launcher; /* its name, NULL if not known */
  char host[64];
  char file_host[64];              /* host as part of a file name */
  char run[TSCOPE_RUN_NAME_BYTES]; /* equal for all processes of a run, and valid as a file name */
};

/* From the copy of the environment (process_environment.h), /proc and the host's name. */
void tscope_identify(struct tscope_identity *identity);

/* Writes everything the core knows about the process as INFO records. */
void tscope_facts_write(const struct tscope_identity *identity);

/* The interpreter's version. False where there is none. Looks up a symbol, see tscope_wake(). */
bool tscope_facts_write_python(void);

/* The commit checked out where `folder` is, read from the repository's own files. False where
 * there is none. */
bool tscope_git_commit(const char *folder, char *commit, size_t bytes);
