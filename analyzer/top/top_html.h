/* SPDX-License-Identifier: MIT
 *
 * What tscope-top shows, as one page for a browser that reloads itself.
 */
#ifndef TSCOPE_TOP_HTML_H
#define TSCOPE_TOP_HTML_H

#include "top/top_page.h"

/* Writes the page. `view` is NULL while there is none, and `why` then says why. */
void top_html_write(struct live_view *view, const char *why, enum top_sort sort, double interval_s,
                    FILE *out);

/* The page but for its data, made by embed.py of page/. */
extern const char live_page_before_data[], live_page_after_data[];

#endif
