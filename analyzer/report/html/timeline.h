/* SPDX-License-Identifier: MIT
 *
 * The page's timeline: chosen steps of chosen ranks, small enough for a page.
 */
#ifndef TSCOPE_HTML_TIMELINE_H
#define TSCOPE_HTML_TIMELINE_H

#include <jansson.h>

#include "report/report.h"

/* Sets *timeline to what script/timeline.js draws, or to null if there is nothing to show. Times
 * are ns; those of pieces are relative to the piece before. 0, or negative errno. */
int html_timeline(const struct results *results, const struct report_view *view, json_t **timeline);

#endif
