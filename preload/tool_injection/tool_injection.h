/* SPDX-License-Identifier: MIT
 *
 * What tscope answers where a library asks the environment for a tool.
 */
#ifndef TSCOPE_SEATS_H
#define TSCOPE_SEATS_H

/* The answer to the code at `caller` for an environment variable that is not set; NULL for all but
 * the free seats of seats.def. errno is preserved. */
char *tscope_seat(const char *variable, const void *caller);

#endif
