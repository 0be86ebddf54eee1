/* SPDX-License-Identifier: MIT
 *
 * The text of a JSON document, ASCII only: then no name from a trace can act on the reader's
 * terminal.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

enum json_text {
  JSON_TEXT_LINES, /* indented, but each array of numbers is on one line: a thousand step times are
                      not a thousand lines */
  JSON_TEXT_SCRIPT /* without blanks or any '<': nothing ends a script without one */
};

/* Numbers that are not whole get nine digits: they hold every measured figure, and print the same
 * everywhere. 0, or negative errno. */
int json_text_write(json_t *document, enum json_text kind, FILE *out);
