/* SPDX-License-Identifier: MIT
 *
 * Questions to a file system that may not answer: on a server, or on a disk that is frozen. The
 * kernel holds whoever asks, and nothing ends a process that it holds. So another process asks.
 */
#pragma once

#include <stddef.h>

/* Only what is answered is to be used. Told to end: a signal came that asks for it, and the answer
 * was not waited for. Not asked: there is no room for another process, or no descriptor is left. */
enum asked { ASK_ANSWERED, ASK_NO_ANSWER, ASK_TOLD_TO_END, ASK_NOT_ASKED };

/* Runs `ask` in a process of its own, whose standard output and standard error come here: into
 * `answer`, or to standard error if that is NULL. No answer: it has not ended after so many
 * seconds, and is given up. */
enum asked ask_within(int seconds, void (*ask)(const void *question), const void *question,
                      char *answer, size_t bytes);
