/* SPDX-License-Identifier: MIT
 *
 * Why the kernel does not let another process be read or traced, and what to do about it. Yama's
 * rules are those of Documentation/admin-guide/LSM/Yama.rst and security/yama/yama_lsm.c: they
 * apply to every access with PTRACE_MODE_ATTACH (ptrace, its memory, the system call that a thread
 * is in), and not for the rest of /proc.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether the kernel refuses to let `pid` be read by this process. */
bool is_reading_refused(pid_t pid);

/* Why, in a static text; for a process that was refused. */
const char *describe_refusal(pid_t pid);

/* The same of a process of `owner`, for a reader of `reader`, where Yama's scope is in the file
 * `scope`; no such file is no Yama. */
const char *describe_refusal_for(uid_t owner, uid_t reader, const char *scope);
