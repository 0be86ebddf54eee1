/* SPDX-License-Identifier: MIT
 *
 * What the report's destination can show.
 */
#ifndef TSCOPE_TERMINAL_H
#define TSCOPE_TERMINAL_H

#include "report/options.h"

/* Fills in width, utf8, color and links for a report written to `fd`. Needs setlocale() done. */
void terminal_detect(const struct options *options, int fd, struct report_view *view);

#endif
