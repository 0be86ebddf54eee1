/* SPDX-License-Identifier: MIT
 *
 * Places in a report ("train.py:12") as links of the terminal to the file that they are short for:
 * OSC 8 (https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda).
 */
#ifndef TSCOPE_PLACE_LINK_H
#define TSCOPE_PLACE_LINK_H

#include "report/report.h"

/* How many bytes at the beginning of `text` are a place whose file is on this machine, and its
 * address; 0 if they are none. An address holds only characters that are safe in a terminal. */
size_t place_link(const struct results *results, const char *text, size_t bytes, char *address,
                  size_t room);

#endif
