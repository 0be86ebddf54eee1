/* SPDX-License-Identifier: MIT
 *
 * What tscope-top shows, for others than a terminal. docs/outputs/top.md says what each field and
 * metric means.
 */
#pragma once

#include "top/top_page.h"

/* For programs: one document on a line of its own. 0, or -EIO. */
int top_json_write(const struct live_view *view, FILE *out);

/* As OpenMetrics, for node_exporter's textfile collector. Without a view: the text of a directory
 * in which there is no run yet. */
void top_metrics_write(const struct live_view *view, FILE *out);

/* As a page for a browser that reloads itself. `view` is NULL while there is none, and `why` then
 * says why. */
void top_html_write(struct live_view *view, const char *why, enum top_sort sort, double interval_s,
                    FILE *out);

/* The page but for its data, made by embed.py of page/. */
extern const char live_page_before_data[], live_page_after_data[];
