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

static json_t *effect_of(const struct host_report *report, enum host_measure measure,
                         const struct effect *effect) {
  return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:b, s:b, s:o}", "name",
                   text_or_null(host_effect_unit(report, measure, effect->unit)), "effect",
                   number_or_null(host_effect_share(measure, effect->size)), "low",
                   number_or_null(host_effect_share(measure, effect->low)), "high",
                   number_or_null(host_effect_share(measure, effect->high)), "runs",
                   (int)effect->runs, "of_runs", (int)effect->unit_runs, "first",
                   run_of(report, effect->first), "last", run_of(report, effect->last),
                   "began_later", effect->begins, "is_over", effect->ends, "p_value",
                   number_or_null(effect->probability));
}

static json_t *measure_of(const struct host_report *report, enum host_measure measure) {
  const struct effects *effects = &report->measures[measure];
  json_t *found =
      JSON_LIST(effects->found.at, effects->found.n, effect, effect_of(report, measure, effect));
  return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o}", "kind", host_measures[measure].word, "meaning",
                   host_measures[measure].meaning, "named", found, "compared", (int)effects->units,
                   "noise", number_or_null(host_effect_share(measure, effects->noise)),
                   "could_show", number_or_null(host_effect_share(measure, effects->could_show)));
}

static json_t *lost_of(const struct host_report *report, const struct lost_host *lost) {
  return json_pack("{s:o, s:i, s:i, s:f, s:f}", "name",
                   text_or_null(report->records->hosts.texts.at[lost->host]), "lost",
                   (int)lost->lost, "of_runs", (int)lost->runs, "expected", lost->expected,
                   "p_value", lost->probability);
}

static json_t *trend_of(const struct host_report *report, const struct job_trend *trend) {
  json_t *stretches = JSON_LIST(
      trend->stretches.at, trend->stretches.n, one,
      json_pack("{s:o, s:o, s:i, s:f}", "first", run_of(report, one->first), "last",
                run_of(report, one->last), "runs", (int)one->runs, "step_ms", one->step_ms));
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
                JSON_LIST(report->lost.at, report->lost.n, one, lost_of(report, one)), "trends",
                JSON_LIST(report->trends.at, report->trends.n, one, trend_of(report, one)));
  int error =
      !document || json_dumpf(document, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) != 0 ? -EIO : 0;
  fputc('\n', out);
  json_decref(document);
  return error;
}
