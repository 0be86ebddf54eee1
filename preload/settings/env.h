/* SPDX-License-Identifier: MIT
 *
 * The configuration of this process, from the variables of env.def.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"
#include "settings/env.def"

#pragma GCC visibility push(hidden)

enum { TSCOPE_ENV_TEXT_BYTES = 1024 };

/* `part` of every `whole`; both 0: not set. */
struct tscope_fraction {
  u32 part, whole;
};

#define TSCOPE_ENV_MEMBER_FLAG(member) bool member;
#define TSCOPE_ENV_MEMBER_TEXT(member) char member[TSCOPE_ENV_TEXT_BYTES];
#define TSCOPE_ENV_MEMBER_NUMBER(member) u64 member;
#define TSCOPE_ENV_MEMBER_SIZE(member) u64 member;
#define TSCOPE_ENV_MEMBER_FRACTION(member) struct tscope_fraction member;
#define X(member, TYPE, variable, standard, values, doc) TSCOPE_ENV_MEMBER_##TYPE(member)
struct tscope_env {
  TSCOPE_ENV(X)
};
#undef X

/* Filled when the process wakes, before any family is woken; never changes after that. */
extern struct tscope_env tscope_env;

/* Copies the environment (process_environment.h) and reads it, on a thread of the job. A value that
 * makes no sense is left at its default, with one line for all. Where the environment cannot be
 * copied the process stays off: what its user wants is not known. */
void tscope_env_read(void);

/* A FLAG variable as it is now; for what must be known before the process wakes. */
bool tscope_env_flag(const char *variable, bool standard);

/* Whether tscope may do anything in this process, as the environment is now. Not in one that has
 * more rights than who started it. */
bool tscope_is_wanted(void);

#pragma GCC visibility pop
