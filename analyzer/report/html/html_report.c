/* SPDX-License-Identifier: MIT
 *
 * The report as one page that needs only a browser. Its data are the document of the JSON report,
 * so both show the same numbers; see docs/outputs/html-report.md.
 */
#include "analyses/path/path_labels.h"
#include "base/units.def"
#include "diff/diff_result.h"
#include "kernels/kernels.h"
#include "report/html/page.h"
#include "report/html/shades.def"
#include "report/json/json_fields.h"
#include "report/parts.def"
#include "report/report.h"
#include "report/sections.h"

#define U(scale, name) json_pack("[f,s]", (double)(scale), name),
#define UNITS(UNITS_OF) list_of((json_t *[]){UNITS_OF(U) NULL})

static json_t *list_of(json_t *const *at) {
  json_t *list = json_array();
  while (*at)
    json_array_append_new(list, *at++);
  return list;
}

#define S(value, shade)                                                                            \
  case value:                                                                                      \
    return #shade;

/* Each value has a shade, or the compiler warns, which the tests take as an error. */
static const char *shade_of_line(enum budget_part part) {
  switch (part) { BUDGET_SHADES(S) }
  return NULL;
}

static const char *shade_of_category(enum path_category category) {
  switch (category) {
    PATH_SHADES(S)
  case PATH_CATEGORIES:
    break;
  }
  return NULL;
}

static const char *shade_of_kernels(enum kernel_category category) {
  switch (category) {
    KERNEL_SHADES(S)
  default:
    return NULL;
  }
}

/* {"budget": {"compute": "compute"}, ...}: the colour of what is told by its name. */
static json_t *shades(void) {
  json_t *budget = json_object(), *path = json_object(), *kernels = json_object();
  for (u32 i = 0; budget_part_words[i]; i++)
    json_object_set_new(budget, budget_part_words[i], json_string(shade_of_line(i)));
  for (u8 i = 0; i < PATH_CATEGORIES; i++)
    json_object_set_new(path, path_category_name(i), json_string(shade_of_category(i)));
#define C(ID, name, ...)                                                                           \
  if (shade_of_kernels(KERNEL_##ID))                                                               \
    json_object_set_new(kernels, name, json_string(shade_of_kernels(KERNEL_##ID)));
  TSCOPE_KERNEL_CATEGORIES(C)
#undef C
  return json_pack("{s:o,s:o,s:o}", "budget", budget, "path", path, "kernels", kernels);
}

/* What the text report names in the same way. */
static json_t *names_and_units(void) {
#define P(part, name, ...) json_pack("{s:s,s:s}", "key", #part, "name", name),
  json_t *parts = list_of((json_t *[]){BAR_PARTS(P) NULL});
#undef P
#define P(phase, ...) json_string(#phase),
  json_t *phases = list_of((json_t *[]){BAR_PHASES(P) NULL});
#undef P
  json_t *marks = json_object();
#define M(mark, key, word, glyph, style)                                                           \
  if (mark_words[MARK_##mark])                                                                     \
    json_object_set_new(marks, mark_words[MARK_##mark], json_pack("[s,s]", glyph, word));
  TSCOPE_MARKS(M)
#undef M
  return json_pack("{s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:o}}", "parts", parts, "phases",
                   phases, "marks", marks, "shades", shades(), "units", "time",
                   UNITS(TSCOPE_TIME_UNITS), "bytes", UNITS(TSCOPE_BYTE_UNITS), "memory",
                   UNITS(TSCOPE_MEMORY_UNITS), "count", UNITS(TSCOPE_COUNT_UNITS), "bandwidth",
                   UNITS(TSCOPE_BANDWIDTH_UNITS), "flops", UNITS(TSCOPE_FLOP_UNITS));
}

static int write_page(const struct results *results, const char *beside, json_t *other, FILE *out) {
  json_t *data = json_pack("{s:s,s:o,s:o}", "tool", "tscope-report " TSCOPE_VERSION, "report",
                           json_report_document(results), beside, other);
  json_object_update_new(data, names_and_units());
  fputs(html_page_before_data, out);
  int error = html_write_document(data, out);
  fputs(html_page_after_data, out);
  json_decref(data);
  return error;
}

static int write_html(const struct results *results, const struct report_view *view, FILE *out) {
  return write_page(results, "timeline", html_timeline(results, view), out);
}

static int write_html_diff(const struct results *results, const struct report_view *view,
                           FILE *out) {
  (void)view;
  return write_page(results, "before", json_report_document(results->diff->earlier), out);
}

const struct report_backend report_html = {
    .write = write_html, .write_diff = write_html_diff, .opens = OPENS_PAGE};
