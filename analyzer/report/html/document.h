/* SPDX-License-Identifier: MIT
 *
 * A JSON document as the data of a page: small, and safe in HTML with any content of a trace.
 */
#ifndef TSCOPE_HTML_DOCUMENT_H
#define TSCOPE_HTML_DOCUMENT_H

#include <jansson.h>
#include <stdio.h>

/* Longer strings are cut, and end in a mark that says so. */
#define HTML_STRING_BYTES 2000u

/* Writes the document so that it can be between <script> and </script>. Lists of objects with the
 * same fields are written with the names of the fields once; script/data.js undoes that. Changes
 * the document. 0, or negative errno; the caller must look for errors of `out`. */
int html_write_document(json_t *document, FILE *out);

#endif
