/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_TERMINAL_COLOR_H
#define TSCOPE_TERMINAL_COLOR_H

#include <stdbool.h>

/* Whether what is written to `fd` is to have colors, where no option says so. no-color.org:
 * NO_COLOR, when not empty, says no; FORCE_COLOR says yes unless it is 0. Where both are set, plain
 * text is the one that no reader is hurt by. */
bool terminal_wants_color(int fd);

#endif
