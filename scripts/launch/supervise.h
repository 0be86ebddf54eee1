/* SPDX-License-Identifier: MIT
 *
 * Runs a command so that whoever started this process sees no difference: signals reach the
 * command, its end becomes ours, and it does not outlive us.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Keeps all signals pending that do not stop a process, so that none ends this one before the
 * command has it. Also SIGPIPE: a line of ours that nobody reads must not be the end. `before`: the
 * mask that the command gets. */
void supervise_begin(sigset_t *before);

/* Runs the command, passes on what is sent to this process alone, and returns the wait status. Runs
 * it in place of this process if no process can be started. Of its descriptors this process keeps
 * files, and standard error if it `says` something later: whoever waits until the command has
 * closed its output, or reads no more, does not wait for us. */
int supervise(char **command, const sigset_t *before, bool says);

/* The exit status of the command; if a signal ended it, this process ends by the same signal. */
int supervise_exit(int status);
