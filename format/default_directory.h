/* SPDX-License-Identifier: MIT
 *
 * Where traces are if nobody names a directory. /tmp/tscope belongs to the user who made it first;
 * everybody else has a directory with the user's id.
 */
#pragma once

#include <stdbool.h>

#define TSCOPE_DEFAULT_DIRECTORY "/tmp/tscope"
enum { TSCOPE_DEFAULT_DIRECTORY_BYTES = 32 };

/* Where this user's processes write: /tmp/tscope if it is this user's or not there yet, else
 * /tmp/tscope-UID. Only system calls, so also in a signal handler. */
void tscope_directory_to_write(char path[TSCOPE_DEFAULT_DIRECTORY_BYTES]);

/* Where to look for traces: that one of this user's two directories that changed last. If there is
 * none, /tmp/tscope. True if that belongs to another user, whose number is then in `owner`. */
bool tscope_directory_to_read(char path[TSCOPE_DEFAULT_DIRECTORY_BYTES], unsigned *owner);
