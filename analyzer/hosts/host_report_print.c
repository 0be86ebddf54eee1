/* SPDX-License-Identifier: MIT
 *
 * The report on hosts in words, and as metrics for a scraper.
 */
#include <math.h>
#include <string.h>

#include "base/now.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "hosts/host_report.h"

enum { JOB_SHOWN = 60 }; /* characters of a job's command */

static struct local_time day_of(const struct host_report *report, u32 run) {
  return local_time(report->records->runs.at[run].began_s, ", %Y-%m-%d");
}

static void print_run(const struct host_report *report, u32 run, FILE *out) {
  SCOPED_ARENA struct arena arena = {0};
  fprintf(out, "run %s%s", arena_printable(&arena, report->records->runs.at[run].name),
          day_of(report, run).text);
}

static void print_name(const char *name, FILE *out) {
  SCOPED_ARENA struct arena arena = {0};
  fprintf(out, "%s", arena_printable(&arena, name));
}

static void print_effect(const struct host_report *report, enum host_measure measure,
                         const struct effect *effect, FILE *out) {
  fprintf(out, "%-11s  ", host_measures[measure].word);
  print_name(host_effect_unit(report, measure, effect->unit), out);
  fprintf(out, "  %s", signed_percent(host_effect_share(measure, effect->size)).text);
  fprintf(out, " (%s to %s)", percent(host_effect_share(measure, effect->low)).text,
          percent(host_effect_share(measure, effect->high)).text);
  fprintf(out, "  in %u of its %u runs", effect->runs, effect->unit_runs);
  if (effect->begins && report->records->in_order) {
    fprintf(out, ", since ");
    print_run(report, effect->first, out);
  }
  if (effect->ends && report->records->in_order) {
    fprintf(out, ", until ");
    print_run(report, effect->last, out);
  }
  fprintf(out, "  (by chance: %s)\n", probability(effect->probability).text);
}

static void print_lost(const struct host_report *report, FILE *out) {
  FOR_EACH(report->lost.at, report->lost.n, lost) {
    fprintf(out, "%-11s  ", "lost host");
    print_name(report->records->hosts.texts.at[lost->host], out);
    fprintf(out,
            "  ended %u of its %u runs by a signal or in silence; %s expected  (by chance: %s)\n",
            lost->lost, lost->runs, decimal(lost->expected, 1).text,
            probability(lost->probability).text);
  }
}

/* What could not have been seen is said beside what was. */
static void print_power(const struct host_report *report, enum host_measure measure, FILE *out) {
  const struct effects *effects = &report->measures[measure];
  fprintf(out, "  %-11s  ", host_measures[measure].word);
  if (isnan(effects->could_show))
    fprintf(out, "cannot tell: %s\n",
            effects->units ? "a host needs five runs that can be compared"
                           : "no run has two that can be compared");
  else
    fprintf(out, "%u named of %u; from run to run one differs by %s; with %u runs each, %s shows\n",
            effects->found.n, effects->units,
            percent(host_effect_share(measure, effects->noise)).text, effects->runs,
            percent(host_effect_share(measure, effects->could_show)).text);
}

static void print_trend(const struct host_report *report, const struct job_trend *trend,
                        FILE *out) {
  SCOPED_ARENA struct arena arena = {0};
  const char *job = arena_printable(&arena, report->records->jobs.texts.at[trend->job]);
  fprintf(out, "%s of %.*s%s\n", plural(trend->runs, "run").text, JOB_SHOWN, job,
          strlen(job) > JOB_SHOWN ? "..." : "");
  for (u32 i = 0; i < trend->stretches.n; i++) {
    const struct trend_stretch *now = &trend->stretches.at[i];
    fprintf(out, "  step %s", duration_ms(now->step_ms).text);
    if (i == 0) {
      fprintf(out, trend->stretches.n == 1 ? ", without a change\n" : " at first\n");
      continue;
    }
    fprintf(out, " (%s) since ", signed_percent(now->step_ms / now[-1].step_ms - 1).text);
    print_run(report, now->first, out);
    fputc('\n', out);
  }
}

void host_report_print(const struct host_report *report, FILE *out) {
  const struct run_records *records = report->records;
  fprintf(out, "%s on %s", plural(records->runs.n, "run").text,
          plural(records->hosts.texts.n, "host").text);
  if (records->in_order && records->runs.n)
    fprintf(out, "%s to %s", day_of(report, 0).text, day_of(report, records->runs.n - 1).text + 2);
  fprintf(out, "\n\n");
  u32 named = report->lost.n;
  EACH_EFFECT(report, measure, effect) {
    print_effect(report, measure, effect, out);
    named++;
  }
  print_lost(report, out);
  if (!named)
    fprintf(out, "No host stands out.\n");
  fprintf(out, "\nWhat these runs can show\n");
  for (enum host_measure measure = 0; measure < HOST_MEASURES; measure++)
    print_power(report, measure, out);
  if (report->measures[HOST_SLOW_HOST].left_out)
    fprintf(out,
            "  left out     %s a rank of a job that always ran on the same one or two hosts: "
            "its own work and its host cannot be told apart\n",
            plural(report->measures[HOST_SLOW_HOST].left_out, "time").text);
  if (!records->in_order && records->runs.n)
    fprintf(out, "  order        not every run says when it began: no \"since\", and no trend\n");
  if (report->trends.n)
    fprintf(out, "\nStep times\n");
  FOR_EACH(report->trends.at, report->trends.n, trend)
    print_trend(report, trend, out);
}

void host_report_metrics(const struct host_report *report, FILE *out) {
  print_metric(
      "tscope_hosts_effect",
      "how much worse a host, device or link is than the others over many runs, as a share",
      "gauge", out);
  EACH_EFFECT(report, measure, effect) {
    if (effect->ends)
      continue; /* it is over */
    fprintf(out, "tscope_hosts_effect{kind=\"%s\",", host_measures[measure].word);
    print_label("name", host_effect_unit(report, measure, effect->unit), out);
    fprintf(out, "} %.6g\n", host_effect_share(measure, effect->size));
  }
  print_metric("tscope_hosts_lost", "runs that a host ended, where that is more than chance",
               "gauge", out);
  FOR_EACH(report->lost.at, report->lost.n, lost) {
    fprintf(out, "tscope_hosts_lost{");
    print_label("name", report->records->hosts.texts.at[lost->host], out);
    fprintf(out, "} %u\n", lost->lost);
  }
  print_metric("tscope_hosts_runs", "number of runs that were compared", "gauge", out);
  fprintf(out, "tscope_hosts_runs %u\n# EOF\n", report->records->runs.n);
}
