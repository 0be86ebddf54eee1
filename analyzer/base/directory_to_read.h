/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_DIRECTORY_TO_READ_H
#define TSCOPE_DIRECTORY_TO_READ_H

/* Where a program looks for traces if its command line names no directory: TSCOPE_DIR, else where
 * this user's jobs write. If that belongs to another user, says so in a line on stderr. Static. */
const char *directory_to_read(const char *program);

#endif
