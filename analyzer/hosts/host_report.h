/* SPDX-License-Identifier: MIT
 *
 * What many runs together say: hosts, devices and links that are slow, hosts that others wait for,
 * hosts that are lost more often than chance allows, and how the step time of each job went.
 */
#pragma once

#include "hosts/effects.h"
#include "hosts/run_records.h"

/* What is compared: H(NAME, "word", "of one", least, logarithmic, "what it is"). A logarithmic size
 * is told as a share: exp(size) - 1. */
#define TSCOPE_HOST_MEASURES(H)                                                                    \
  H(SLOW_HOST, "slow host", hosts, 0.005, true,                                                    \
    "the own work of its ranks takes longer than that of other hosts' ranks in the same run")      \
  H(LATE_HOST, "late host", hosts, 0.005, false, "the others wait for its ranks, share of a step") \
  H(SLOW_DEVICE, "slow device", devices, 0.005, true,                                              \
    "the own work of the rank on it takes longer, and its host as a whole is not named")           \
  H(SLOW_LINKS, "slow links", hosts, 0.02, true,                                                   \
    "messages from and to it take longer than those of the same size between other hosts")         \
  H(SLOW_LINK, "slow link", links, 0.02, true,                                                     \
    "messages of the same size take longer than between other hosts, and neither end is named")

enum host_measure {
#define H(NAME, word, names, least, logarithmic, what) HOST_##NAME,
  TSCOPE_HOST_MEASURES(H) HOST_MEASURES
#undef H
};

extern const struct host_measure_facts {
  const char *word, *meaning;
  double least; /* effects below are not told */
  bool logarithmic;
  size_t names; /* of its units, a struct text_numbers in struct run_records */
} host_measures[HOST_MEASURES];

/* A loop over all effects that were found, of each kind of measure. */
#define EACH_EFFECT(report, measure, effect)                                                       \
  for (enum host_measure measure = 0; measure < HOST_MEASURES; measure++)                          \
    FOR_EACH((report)->measures[measure].found.at, (report)->measures[measure].found.n, effect)

/* A host that was lost more often than chance allows. */
struct lost_host {
  u32 host, lost, runs; /* in how many of its runs */
  double expected;      /* number of losses, by the rate of all hosts */
  double probability;   /* of so many by chance, exact, corrected for the number of hosts */
};

/* A stretch of runs of one job with the same step time. */
struct trend_stretch {
  u32 first, last, runs; /* numbers of runs */
  double step_ms;        /* median */
};

struct job_trend {
  u32 job, runs;
  VECTOR(struct trend_stretch) stretches; /* one: it did not change */
};

struct host_report {
  struct run_records *records;
  struct effects measures[HOST_MEASURES];
  VECTOR(struct lost_host) lost;
  VECTOR(struct job_trend) trends;
};

/* Analyses records, which must outlive the report; trends only if they are in order. */
void host_report_make(struct run_records *records, struct host_report *report);
void host_report_free(struct host_report *report);

/* The size of an effect of this measure as a share. */
double host_effect_share(enum host_measure measure, double size);
const char *host_effect_unit(const struct host_report *report, enum host_measure measure, u32 unit);

/* Outputs. Negative errno where writing failed. */
void host_report_print(const struct host_report *report, FILE *out);
int host_report_json(const struct host_report *report, FILE *out);
int host_report_sqlite(const struct host_report *report, const char *path); /* an empty file */
void host_report_metrics(const struct host_report *report, FILE *out);
