/* SPDX-License-Identifier: MIT
 *
 * The page, and its data.
 */
#pragma once

#include <jansson.h>

#include "report/report.h"

/* The page without its data: page.html with style.css and the scripts in it, made by embed.py. */
extern const char html_page_before_data[], html_page_after_data[];

/* Longer strings are cut, and end in a mark that says so. */
#define HTML_STRING_BYTES 2000u

/* document.c: writes a JSON document so that it can be between <script> and </script>: small, and
 * safe with any content of a trace. Lists of objects with the same fields are written with the
 * names of the fields once; script/data.js undoes that. Changes the document. 0, or negative errno;
 * the caller must look for errors of `out`. */
int html_write_document(json_t *document, FILE *out);

/* timeline.c: chosen steps of chosen ranks, small enough for a page, as script/timeline.js draws
 * them; null if there is nothing to show. Times are ns; those of pieces are relative to the piece
 * before. */
json_t *html_timeline(const struct results *results, const struct report_view *view);
