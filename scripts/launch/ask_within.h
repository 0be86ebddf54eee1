/* SPDX-License-Identifier: MIT
 *
 * Questions to a file system that may not answer: on a server, or on a disk that is frozen. The
 * kernel holds whoever asks, and nothing ends a process that it holds. So another process asks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Runs `ask` in a process of its own, whose standard output and standard error come here: into
 * `answer`, or to standard error if that is NULL. False if it has not ended after so many seconds,
 * or if a signal came that asks to end: then it is given up, and whatever came of the answer is not
 * to be used. */
bool ask_within(int seconds, void (*ask)(const void *question), const void *question, char *answer,
                size_t bytes);
