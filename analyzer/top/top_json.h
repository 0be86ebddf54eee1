/* SPDX-License-Identifier: MIT
 *
 * What a page shows, for programs. docs/outputs/top.md says what each field means.
 */
#ifndef TSCOPE_TOP_JSON_H
#define TSCOPE_TOP_JSON_H

#include <stdio.h>

#include "live/live_view.h"

/* Writes one document on a line of its own. 0, or -EIO. */
int top_json_write(const struct live_view *view, FILE *out);

#endif
