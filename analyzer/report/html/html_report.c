/* SPDX-License-Identifier: MIT
 *
 * The report as one page that needs only a browser. Its data are the document of the JSON report,
 * so both show the same numbers; see docs/outputs/html-report.md.
 */
#include "diff/diff_result.h"
#include "report/html/page.h"
#include "report/json/json_fields.h"
#include "report/report.h"

static int write_page(json_t *data, FILE *out) {
  fputs(html_page_before_data, out);
  int error = html_write_document(data, out);
  fputs(html_page_after_data, out);
  json_decref(data);
  return error;
}

static json_t *describe_tool(void) {
  return json_string("tscope-report " TSCOPE_VERSION);
}

static int write_html(const struct results *results, const struct report_view *view, FILE *out) {
  return write_page(json_pack("{s:o,s:o,s:o}", "tool", describe_tool(), "report",
                              json_report_document(results), "timeline",
                              html_timeline(results, view)),
                    out);
}

static int write_html_diff(const struct results *results, const struct report_view *view,
                           FILE *out) {
  (void)view;
  return write_page(json_pack("{s:o,s:o,s:o}", "tool", describe_tool(), "report",
                              json_report_document(results), "before",
                              json_report_document(results->diff->earlier)),
                    out);
}

const struct report_backend report_html = {
    .write = write_html, .write_diff = write_html_diff, .opens = OPENS_PAGE};
