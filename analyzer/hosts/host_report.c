/* SPDX-License-Identifier: MIT */
#include "hosts/host_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/statistics.h"
#include "base/texts.h"

/* The kinds of effects, and losses: all that may name a host. */
enum { SEARCHES = HOST_MEASURES + 1, TREND_LEAST_RUNS = 8 };
#define TREND_PROBABILITY 0.01

const struct host_measure_facts host_measures[] = {
#define H(NAME, word, names, least, logarithmic, what)                                             \
  {word, what, least, logarithmic, offsetof(struct run_records, names)},
    TSCOPE_HOST_MEASURES(H)
#undef H
};

static const struct text_numbers *names_of(const struct run_records *records,
                                           enum host_measure measure) {
  return (const void *)((const char *)records + host_measures[measure].names);
}

double host_effect_share(enum host_measure measure, double size) {
  return host_measures[measure].logarithmic ? expm1(size) : size;
}

const char *host_effect_unit(const struct host_report *report, enum host_measure measure,
                             u32 unit) {
  return names_of(report->records, measure)->texts.at[unit];
}

static void observe_ranks(const struct run_records *records, enum host_measure measure,
                          struct observations *all) {
  for (u32 run = 0; run < records->runs.n; run++)
    FOR_EACH(records->runs.at[run].ranks.at, records->runs.at[run].ranks.n, rank) {
      double value = measure == HOST_LATE_HOST ? rank->late
                     : rank->own_ms > 0        ? log(rank->own_ms)
                                               : NAN;
      u32 unit = measure == HOST_SLOW_DEVICE ? rank->device : rank->host;
      if (isfinite(value))
        VECTOR_PUSH(&all->all, (struct observation){.run = run,
                                                    .group = run,
                                                    .position = rank->position,
                                                    .unit = unit,
                                                    .value = value});
    }
  all->groups = records->runs.n;
  all->positions = records->positions.texts.n;
}

ORDER_BY(by_kind, struct observation, UP(group) UP(run))

static void observe_message(const struct link_record *link, u32 run, u32 unit,
                            struct observations *all) {
  VECTOR_PUSH(&all->all, (struct observation){.run = run,
                                              .group = link->kind,
                                              .position = INDEX_NONE,
                                              .unit = unit,
                                              .value = log(link->ms)});
}

/* Messages are compared with those of the same kind in the same run; each counts for both hosts, or
 * for the pair. */
static void observe_messages(const struct run_records *records, enum host_measure measure,
                             struct observations *all) {
  for (u32 run = 0; run < records->runs.n; run++) {
    u32 first = all->all.n;
    FOR_EACH(records->runs.at[run].links.at, records->runs.at[run].links.n, link) {
      observe_message(link, run, measure == HOST_SLOW_LINK ? link->link : link->from, all);
      if (measure == HOST_SLOW_LINKS)
        observe_message(link, run, link->to, all);
    }
    if (all->all.n == first)
      continue;
    SORT(all->all.at + first, all->all.n - first, by_kind);
    for (u32 i = first, kind = INDEX_NONE; i < all->all.n; i++) {
      all->groups += all->all.at[i].group != kind;
      kind = all->all.at[i].group;
      all->all.at[i].group = all->groups - 1;
    }
  }
}

static void find_measure(struct host_report *report, enum host_measure measure) {
  struct observations all = {.runs = report->records->runs.n,
                             .units = names_of(report->records, measure)->texts.n};
  if (measure == HOST_SLOW_LINK || measure == HOST_SLOW_LINKS)
    observe_messages(report->records, measure, &all);
  else
    observe_ranks(report->records, measure, &all);
  report->measures[measure] = find_effects(&all, SEARCHES, host_measures[measure].least);
  free(all.all.at);
}

/* Whether a name speaks of a host that is named already: "HOST, device 3", "HOST -> OTHER". */
static bool names_host(const struct host_report *report, enum host_measure of_hosts,
                       const char *name) {
  FOR_EACH(report->measures[of_hosts].found.at, report->measures[of_hosts].found.n, effect) {
    const char *host = host_effect_unit(report, of_hosts, effect->unit),
               *other = strstr(name, ARROW);
    const char *after = text_starts_with(name, host) ? name + strlen(host) : "";
    if (text_starts_with(after, DEVICE_OF) || text_starts_with(after, ARROW) ||
        (other && same_text(other + strlen(ARROW), host)))
      return true;
  }
  return false;
}

/* A host that is slow has slow devices, and one with slow links has slow pairs: it is named once.
 */
static void leave_out_parts(struct host_report *report, enum host_measure parts,
                            enum host_measure of_hosts) {
  struct effects *effects = &report->measures[parts];
  effects->found.n =
      KEEP_WHERE(effects->found.at, effects->found.n, one,
                 !names_host(report, of_hosts, host_effect_unit(report, parts, one->unit)));
}

/* P(at least k of `drawn` are marked) if `marked` of `all` are: the hypergeometric tail. */
static double marked_tail(u32 k, u32 drawn, u32 marked, u32 all) {
  double sum = 0;
  for (u32 i = k; i <= drawn && i <= marked; i++)
    if (drawn - i <= all - marked)
      sum +=
          exp(log_choose(marked, i) + log_choose(all - marked, drawn - i) - log_choose(all, drawn));
  return fmin(sum, 1);
}

static void find_lost_hosts(struct host_report *report) {
  const struct run_records *records = report->records;
  u32 hosts = records->hosts.texts.n, all = 0, all_lost = 0;
  /* of each host: its runs, those that it ended, and the last of each, from 1 on */
  SCOPED struct { u32 runs, lost, run, lost_in; } *of = memory_zeroed(hosts, sizeof(*of));
  for (u32 run = 1; run <= records->runs.n; run++)
    FOR_EACH(records->runs.at[run - 1].ranks.at, records->runs.at[run - 1].ranks.n, rank) {
      bool first = of[rank->host].run != run;
      bool first_lost = rank->lost && of[rank->host].lost_in != run;
      of[rank->host].runs += first;
      all += first;
      of[rank->host].lost += first_lost;
      all_lost += first_lost;
      of[rank->host].run = run;
      if (rank->lost)
        of[rank->host].lost_in = run;
    }
  for (u32 host = 0; host < hosts; host++) {
    u32 runs = of[host].runs, lost = of[host].lost;
    double chance = lost ? marked_tail(lost, runs, all_lost, all) * hosts * SEARCHES : 1;
    if (chance <= EFFECTS_PROBABILITY)
      VECTOR_PUSH(&report->lost,
                  (struct lost_host){host, lost, runs, (double)runs * all_lost / all, chance});
  }
}

/* Divides runs[0 .. n) where their step times change for good, and each part again. */
static void divide(struct host_report *report, struct job_trend *trend, const u32 *runs, u32 n,
                   double *values, struct ranked_value *scratch) {
  for (u32 i = 0; i < n; i++)
    values[i] = report->records->runs.at[runs[i]].step_ms;
  double probability;
  u32 at = change_point(values, n, scratch, &probability);
  if (at && probability <= TREND_PROBABILITY) {
    divide(report, trend, runs, at, values, scratch);
    divide(report, trend, runs + at, n - at, values, scratch);
    return;
  }
  VECTOR_PUSH(&trend->stretches, (struct trend_stretch){.first = runs[0],
                                                        .last = runs[n - 1],
                                                        .runs = n,
                                                        .step_ms = median_of(values, n)});
}

static void find_trends(struct host_report *report) {
  const struct run_records *records = report->records;
  SCOPED u32 *runs = memory_array(records->runs.n, sizeof(u32));
  SCOPED double *values = memory_array(records->runs.n, sizeof(double));
  SCOPED struct ranked_value *scratch = memory_array(records->runs.n, sizeof(*scratch));
  for (u32 job = 0; job < records->jobs.texts.n; job++) {
    const struct run_record *all = records->runs.at;
    struct job_trend trend = {.job = job,
                              .runs = LIST_WHERE(runs, 0, records->runs.n, run,
                                                 all[run].job == job && all[run].step_ms > 0, run)};
    if (trend.runs < TREND_LEAST_RUNS)
      continue;
    divide(report, &trend, runs, trend.runs, values, scratch);
    VECTOR_PUSH(&report->trends, trend);
  }
}

void host_report_make(struct run_records *records, struct host_report *report) {
  *report = (struct host_report){.records = records};
  for (enum host_measure measure = 0; measure < HOST_MEASURES; measure++)
    find_measure(report, measure);
  leave_out_parts(report, HOST_SLOW_DEVICE, HOST_SLOW_HOST);
  leave_out_parts(report, HOST_SLOW_LINK, HOST_SLOW_LINKS);
  find_lost_hosts(report);
  if (records->in_order) /* only then is there a before and an after */
    find_trends(report);
}

void host_report_free(struct host_report *report) {
  for (enum host_measure measure = 0; measure < HOST_MEASURES; measure++)
    free(report->measures[measure].found.at);
  FOR_EACH(report->trends.at, report->trends.n, trend)
    free(trend->stretches.at);
  FREE_EACH(report, lost.at, trends.at);
}
