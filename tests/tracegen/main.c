/* SPDX-License-Identifier: MIT
 *
 * tracegen: writes a synthetic run whose truth is known. See tracegen --help.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracegen.h"

static const char usage[] =
    "tracegen [options] DIRECTORY    writes DIRECTORY/RUN/*.tscope and DIRECTORY/RUN.truth.json\n"
    "  --run NAME            run identity (synthetic)\n"
    "  --flavour nccl|gloo   GPU job, or CPU job (nccl)\n"
    "  --ranks N --steps N --buckets N --kernels N   kernels: per bucket and pass\n"
    "  --events N            as many steps as give about N events a rank\n"
    "  --no-gpu-spans        only what the host saw\n"
    "  --phases              PyTorch's ranges (always there for gloo)\n"
    "  --step-marks          marks made by the user\n"
    "  --slow-rank R --slow-factor F\n"
    "  --skew                ranks' clocks are seconds apart and drift by up to 50 ppm\n"
    "  --islands N           communicators with no rank in common\n"
    "  --ranks-per-host N --lost-ranks N\n"
    "  --cut RANK:BYTES      that rank's file ends there\n"
    "  --realtime NS         when the run started; orders the runs of a directory\n"
    "  --data-ns N --kernel-ns N --transfer-ns N --jitter-ns N --end-noise-ns N\n";

enum {
  RUN = 256,
  FLAVOUR,
  RANKS,
  STEPS,
  BUCKETS,
  KERNELS_OPTION,
  EVENTS,
  NO_GPU_SPANS,
  PHASES,
  STEP_MARKS,
  SLOW_RANK,
  SLOW_FACTOR,
  SKEW,
  ISLANDS,
  RANKS_PER_HOST,
  LOST_RANKS,
  CUT,
  REALTIME,
  DATA_NS,
  KERNEL_NS,
  TRANSFER_NS,
  JITTER_NS,
  END_NOISE_NS,
  HELP
};

static const struct option long_options[] = {
    {"run", required_argument, NULL, RUN},
    {"flavour", required_argument, NULL, FLAVOUR},
    {"ranks", required_argument, NULL, RANKS},
    {"steps", required_argument, NULL, STEPS},
    {"buckets", required_argument, NULL, BUCKETS},
    {"kernels", required_argument, NULL, KERNELS_OPTION},
    {"events", required_argument, NULL, EVENTS},
    {"no-gpu-spans", no_argument, NULL, NO_GPU_SPANS},
    {"phases", no_argument, NULL, PHASES},
    {"step-marks", no_argument, NULL, STEP_MARKS},
    {"slow-rank", required_argument, NULL, SLOW_RANK},
    {"slow-factor", required_argument, NULL, SLOW_FACTOR},
    {"skew", no_argument, NULL, SKEW},
    {"islands", required_argument, NULL, ISLANDS},
    {"ranks-per-host", required_argument, NULL, RANKS_PER_HOST},
    {"lost-ranks", required_argument, NULL, LOST_RANKS},
    {"cut", required_argument, NULL, CUT},
    {"realtime", required_argument, NULL, REALTIME},
    {"data-ns", required_argument, NULL, DATA_NS},
    {"kernel-ns", required_argument, NULL, KERNEL_NS},
    {"transfer-ns", required_argument, NULL, TRANSFER_NS},
    {"jitter-ns", required_argument, NULL, JITTER_NS},
    {"end-noise-ns", required_argument, NULL, END_NOISE_NS},
    {"help", no_argument, NULL, HELP},
    {0}};

static u32 number(const char *text) {
  return (u32)strtoul(text, NULL, 0);
}

static u64 long_number(const char *text) {
  return strtoull(text, NULL, 0);
}

/* Events of one step: a launch and, with GPU time, a span per kernel, and the few around them. */
static u32 events_per_step(const struct tracegen_options *options) {
  if (options->flavour == TRACEGEN_GLOO)
    return 2 * options->buckets + 5;
  u32 kernels = 2 * options->buckets * options->kernels + 1;
  u32 rest = 4 + 4 * options->buckets;
  return options->gpu_spans ? 2 * kernels + rest + 1 : kernels + rest;
}

/* 0, or the exit status plus one. `events` is what --events asked for. */
static int take(struct tracegen_options *options, int option, char *value, u32 *events) {
  switch (option) {
  case RUN:
    options->run = value;
    return 0;
  case FLAVOUR:
    options->flavour = strcmp(value, "gloo") == 0 ? TRACEGEN_GLOO : TRACEGEN_NCCL;
    options->phases |= options->flavour == TRACEGEN_GLOO;
    return 0;
  case RANKS:
    options->ranks = number(value);
    return 0;
  case STEPS:
    options->steps = number(value);
    return 0;
  case BUCKETS:
    options->buckets = number(value);
    return 0;
  case KERNELS_OPTION:
    options->kernels = number(value);
    return 0;
  case EVENTS:
    *events = number(value);
    return 0;
  case NO_GPU_SPANS:
    options->gpu_spans = false;
    return 0;
  case PHASES:
    options->phases = true;
    return 0;
  case STEP_MARKS:
    options->step_marks = true;
    return 0;
  case SLOW_RANK:
    options->slow_rank = number(value);
    return 0;
  case SLOW_FACTOR:
    options->slow_factor = strtod(value, NULL);
    return 0;
  case SKEW:
    options->skew = true;
    return 0;
  case ISLANDS:
    options->islands = number(value);
    return 0;
  case RANKS_PER_HOST:
    options->ranks_per_host = number(value);
    return 0;
  case LOST_RANKS:
    options->lost_ranks = number(value);
    return 0;
  case CUT:
    options->cut_rank = number(value);
    options->cut_bytes = strchr(value, ':') ? long_number(strchr(value, ':') + 1) : 0;
    return 0;
  case REALTIME:
    options->start_realtime_ns = long_number(value);
    return 0;
  case DATA_NS:
    options->data_ns = long_number(value);
    return 0;
  case KERNEL_NS:
    options->kernel_ns = long_number(value);
    return 0;
  case TRANSFER_NS:
    options->transfer_ns = long_number(value);
    return 0;
  case JITTER_NS:
    options->jitter_ns = long_number(value);
    return 0;
  case END_NOISE_NS:
    options->end_noise_ns = long_number(value);
    return 0;
  case HELP:
    fputs(usage, stdout);
    return 1;
  default:
    fputs(usage, stderr);
    return 3;
  }
}

int main(int argc, char **argv) {
  struct tracegen_options options = tracegen_defaults();
  u32 events = 0;
  for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
    int stop = take(&options, option, optarg, &events);
    if (stop)
      return stop - 1;
  }
  bool sane = optind + 1 == argc && options.ranks > 0 && options.steps > 0 && options.buckets > 0 &&
              options.buckets <= 256 && options.kernels > 0 && options.islands > 0 &&
              options.islands <= options.ranks && options.ranks_per_host > 0;
  if (!sane) {
    fputs(usage, stderr);
    return 2;
  }
  options.directory = argv[optind];
  if (events)
    options.steps = events / events_per_step(&options) + 1;
  struct tracegen_truth truth;
  int result = tracegen_write(&options, &truth);
  if (result == 0) {
    u64 total = 0;
    for (u32 r = 0; r < options.ranks; r++)
      total += truth.ranks[r].events;
    printf("%s/%s: %u ranks, %u steps, %llu events\n", options.directory, options.run,
           options.ranks, options.steps, (unsigned long long)total);
  } else {
    fprintf(stderr, "tracegen: %s: %s\n", options.directory, strerror(-result));
  }
  tracegen_truth_free(&truth);
  return result == 0 ? 0 : 2;
}
