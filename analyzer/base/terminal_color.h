/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_TERMINAL_COLOR_H
#define TSCOPE_TERMINAL_COLOR_H

#include <stdbool.h>

/* Whether output to `fd` has colors if no option decides. no-color.org: NO_COLOR, if not empty,
 * says no; FORCE_COLOR says yes unless it is 0. If both are set, the output is plain text, which
 * harms no reader. */
bool terminal_wants_color(int fd);

#endif
