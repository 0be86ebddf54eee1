/* SPDX-License-Identifier: MIT
 *
 * The one way in which a name from a file or a job reaches a terminal, a scraper or a log, except
 * through a pen (report/text/pen.h) and JSON. A name may hold escapes that retitle or recolor a
 * terminal, and newlines that make a second line.
 */
#pragma once

#include <stdio.h>

#include "base/arena.h"

/* A copy that shows and does not act: valid UTF-8, with a blank for each newline and tab, and
 * UTF8_REPLACEMENT for every other control character and for what is no character. */
char *arena_printable(struct arena *arena, const char *text);

/* What stands for a character in HTML and XML; NULL where that is the character itself. */
const char *markup_escape(char c);

/* A path, or a part of one, as it must be written in a URL. */
char *arena_url(struct arena *arena, const char *path);

/* Such a copy as the value of a label in OpenMetrics, NAME="...", with what that escapes escaped.
 */
void print_label(const char *name, const char *value, FILE *out);

/* What OpenMetrics writes above the values of a metric, which is a "gauge" or a "counter". */
void print_metric(const char *name, const char *help, const char *type, FILE *out);

/* Prints "PROGRAM: ..." as one such line on standard error. Returns STATUS_BAD. */
int print_problem(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
