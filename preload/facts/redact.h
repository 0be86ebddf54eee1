/* SPDX-License-Identifier: MIT
 *
 * Leaves secrets out of what the trace says about how a process was started.
 */
#pragma once

#include <stddef.h>

/* A command line as text: `arguments` are `n` bytes as in /proc/self/cmdline, each argument with a
 * 0 behind it; `text` is cut at `bytes`, its end included. "(redacted)" replaces everything that
 * may be a secret: values of options and settings whose names suggest one, keys that are recognised
 * by how they begin, and user names and passwords in addresses. */
void tscope_redact_command(char *text, size_t bytes, const char *arguments, size_t n);

/* The value of an environment variable, likewise; all of it is replaced where name or value have a
 * word of secrets. */
void tscope_redact_variable(char *text, size_t bytes, const char *name, const char *value);
