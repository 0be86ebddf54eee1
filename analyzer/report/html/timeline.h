/* SPDX-License-Identifier: MIT
 *
 * The page's timeline: chosen steps of chosen ranks, small enough for a page.
 */
#ifndef TSCOPE_HTML_TIMELINE_H
#define TSCOPE_HTML_TIMELINE_H

#include <jansson.h>

#include "report/report.h"

/* What script/timeline.js draws, or null if there is nothing to show. Times are ns; those of pieces
 * are relative to the piece before. */
json_t *html_timeline(const struct results *results, const struct report_view *view);

#endif
