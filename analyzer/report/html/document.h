/* SPDX-License-Identifier: MIT
 *
 * A JSON document as the data of a page: small, and harmless whatever a trace put into it.
 */
#ifndef TSCOPE_HTML_DOCUMENT_H
#define TSCOPE_HTML_DOCUMENT_H

#include <jansson.h>
#include <stdio.h>

/* Longer strings are cut, and say so. */
#define HTML_STRING_BYTES 2000u

/* Writes the document so that it can stand between <script> and </script>. Lists of objects that
 * have the same fields are written with the names of the fields once; script/data.js undoes that.
 * Changes the document. 0, or negative errno; errors of `out` are the caller's to find. */
int html_write_document(json_t *document, FILE *out);

#endif
