/* SPDX-License-Identifier: MIT
 *
 * The report on hosts as JSON, schema tscope.hosts/1; docs/hosts.md lists the keys.
 */
#include <errno.h>

#include "base/json_values.h"
#include "hosts/host_report.h"

static json_t *run_of(const struct host_report *report, u32 run) {
  const struct run_record *record = &report->records->runs.at[run];
  return json_pack("{s:o, s:o}", "run", text_or_null(record->name), "began_s",
                   number_or_null(record->began_s));
}

#define json_int json_integer
#define json_flag json_boolean
#define json_real number_or_null
#define json_text text_or_null
#define json_word text_or_null
#define AROUND(column)                                                                             \
  if (false)                                                                                       \
  column
#define FIRST_AND_LAST(of)                                                                         \
  json_object_set_new(row, "first", run_of(report, (of)->first));                                  \
  json_object_set_new(row, "last", run_of(report, (of)->last));
#define TABLE(name, what, ...)                                                                     \
  __attribute__((unused)) static json_t *row_of_##name(const struct host_report *report,           \
                                                       ##__VA_ARGS__) {                            \
    json_t *row = json_object();                                                                   \
    (void)report;
#define COLUMN(name, type, what, kind, value) json_object_set_new(row, #name, json_##kind(value));
#define END_TABLE                                                                                  \
  return row;                                                                                      \
  }
#include "hosts/host_schema.def"

static json_t *measure_of(const struct host_report *report, enum host_measure measure) {
  const struct effects *effects = &report->measures[measure];
  json_t *found = JSON_LIST(effects->found.at, effects->found.n, effect,
                            row_of_effects(report, measure, effect));
  return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o}", "kind", host_measures[measure].word, "meaning",
                   host_measures[measure].meaning, "named", found, "compared", (int)effects->units,
                   "noise", number_or_null(host_effect_share(measure, effects->noise)),
                   "could_show", number_or_null(host_effect_share(measure, effects->could_show)));
}

static json_t *trend_of(const struct host_report *report, const struct job_trend *trend) {
  json_t *stretches =
      JSON_LIST(trend->stretches.at, trend->stretches.n, one, row_of_trends(report, trend, 0, one));
  return json_pack("{s:o, s:i, s:o}", "job",
                   text_or_null(report->records->jobs.texts.at[trend->job]), "runs",
                   (int)trend->runs, "stretches", stretches);
}

int host_report_json(const struct host_report *report, FILE *out) {
  json_t *measures = json_array();
  for (enum host_measure measure = 0; measure < HOST_MEASURES; measure++)
    json_array_append_new(measures, measure_of(report, measure));
  json_t *document =
      json_pack("{s:s, s:i, s:i, s:b, s:o, s:o, s:o}", "schema", "tscope.hosts/1", "runs",
                (int)report->records->runs.n, "hosts", (int)report->records->hosts.texts.n,
                "in_order", report->records->in_order, "measures", measures, "lost",
                JSON_LIST(report->lost.at, report->lost.n, one, row_of_lost(report, one)), "trends",
                JSON_LIST(report->trends.at, report->trends.n, one, trend_of(report, one)));
  int error =
      !document || json_dumpf(document, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0 ? -EIO : 0;
  fputc('\n', out);
  json_decref(document);
  return error;
}
