/* SPDX-License-Identifier: MIT
 *
 * tracegen: writes a synthetic run whose truth is known. See tracegen --help.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracegen.h"

enum kind { TEXT, U32, U64, REAL, YES, NO, FLAVOUR, EVENTS, CUT, WORDS };

/* The options: name, kind, field, help. */
static const struct {
  const char *name;
  enum kind kind;
  size_t offset;
  const char *help;
} table[] = {
#define FIELD(field) offsetof(struct tracegen_options, field)
    {"run", TEXT, FIELD(run), "run identity (synthetic)"},
    {"flavour", FLAVOUR, 0, "nccl: a GPU job (default); gloo: a CPU job with phases"},
    {"ranks", U32, FIELD(ranks), "processes (4)"},
    {"steps", U32, FIELD(steps), "training steps (20)"},
    {"events", EVENTS, 0, "number of steps that gives about this many events per rank"},
    {"buckets", U32, FIELD(buckets), "all-reduces per step (4)"},
    {"kernels", U32, FIELD(kernels), "kernels per bucket, forward and backward each (5)"},
    {"no-gpu-spans", NO, FIELD(gpu_spans), "only the host's side"},
    {"event-pairs", YES, FIELD(event_pairs), "GPU times of collectives only"},
    {"ahead", U32, FIELD(ahead), "steps that the host is ahead of the GPU; 0: it waits (0)"},
    {"phases", YES, FIELD(phases), "PyTorch's ranges"},
    {"step-marks", YES, FIELD(step_marks), "steps marked by the user"},
    {"slow-rank", U32, FIELD(slow_rank), "rank whose kernels take longer (none)"},
    {"slow-ranks", U32, FIELD(slow_ranks), "that many ranks, from this one on (1)"},
    {"slow-factor", REAL, FIELD(slow_factor), "by this factor (1.3)"},
    {"slow-share", REAL, FIELD(slow_share), "in this share of the steps (1)"},
    {"skew", YES, FIELD(skew), "clocks are seconds apart and drift by up to 50 ppm"},
    {"skew-hosts", YES, FIELD(skew_hosts), "so are the clocks of hosts, which their ranks share"},
    {"wall-ahead-ns", U64, FIELD(wall_ahead_ns),
     "the wall clock of host N is ahead by N times this (0)"},
    {"wall-step-ns", U64, FIELD(wall_step_ns),
     "a second after the start, NTP sets the wall clock of host N forward by N times this (0)"},
    {"drift-ppm", U32, FIELD(drift_ppm), "largest drift of these clocks (50)"},
    {"unmarked-rank", U32, FIELD(unmarked_rank),
     "gloo: rank that does something outside of phases"},
    {"unmarked-ns", U64, FIELD(unmarked_ns), "its time in each step"},
    {"unmarked-asleep", YES, FIELD(unmarked_asleep), "sleeps meanwhile"},
    {"unmarked-by-turns", YES, FIELD(unmarked_by_turns),
     "in each step another rank, for another time"},
    {"hang-rank", U32, FIELD(hang_rank), "gloo: rank that never calls a last collective (none)"},
    {"islands", U32, FIELD(islands), "communicators with no rank in common (1)"},
    {"ranks-per-host", U32, FIELD(ranks_per_host), "(8)"},
    {"lone-hosts", U32, FIELD(lone_hosts),
     "the last hosts: each has only a communicator of its own (0)"},
    {"mute-hosts", U32, FIELD(mute_hosts),
     "hosts before these that do not record when collectives really ran (0)"},
    {"lost-ranks", U32, FIELD(lost_ranks), "that many of the last ranks have no file (0)"},
    {"cut", CUT, 0, "RANK:BYTES, cuts that rank's file"},
    {"words", WORDS, 0, "FILE whose lines replace all names: of hosts, kernels, threads, ..."},
    {"header-bytes", U32, FIELD(header_bytes), "of the file (4096)"},
    {"chunk-bytes", U32, FIELD(chunk_bytes), "of the file (65536)"},
    {"realtime", U64, FIELD(start_realtime_ns), "start of the run; orders a directory's runs"},
    {"data-ns", U64, FIELD(data_ns), "the host's wait for input (300000)"},
    {"kernel-ns", U64, FIELD(kernel_ns), "a kernel (60000)"},
    {"transfer-ns", U64, FIELD(transfer_ns), "an all-reduce after all have arrived (400000)"},
    {"jitter-ns", U64, FIELD(jitter_ns), "between ranks, in a step's first kernel (20000)"},
    {"end-noise-ns", U64, FIELD(end_noise_ns), "between ranks, at an all-reduce's end (3000)"},
    {"end-pattern", REAL, FIELD(end_pattern),
     "share of a transfer by which the last rank always ends later than the first (0)"},
#undef FIELD
};
enum { OPTIONS = LENGTH_OF(table), LONGEST_WORD = 2000 };

static bool takes_value(enum kind kind) {
  return kind != YES && kind != NO;
}

static void print_help(FILE *out) {
  fputs("usage: tracegen [options] DIRECTORY\n\n"
        "Writes DIRECTORY/RUN/*.tscope and, beside it, DIRECTORY/RUN.truth.json.\n\n",
        out);
  for (u32 i = 0; i < OPTIONS; i++)
    fprintf(out, "  --%-16s %s\n", table[i].name, table[i].help);
}

/* The events of one step: for each kernel a launch and, with GPU times, a span; and a few others.
 */
static u32 events_per_step(const struct tracegen_options *options) {
  if (options->flavour == TRACEGEN_GLOO)
    return 2 * options->buckets + 5;
  u32 kernels = 2 * options->buckets * options->kernels + 1;
  u32 rest = 4 + 4 * options->buckets;
  return options->gpu_spans ? 2 * kernels + rest + 1 : kernels + rest;
}

/* The lines of a file, cut so that each fits into a chunk. A file that cannot be read has none. */
static struct trace_words read_words(const char *path) {
  struct trace_words words = {0};
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t room = 0;
  for (ssize_t n; file && (n = getline(&line, &room, file)) > 0;) {
    size_t bytes = (size_t)n - (line[n - 1] == '\n');
    line[bytes] = '\0';
    words.at = realloc(words.at, (words.n + 1u) * sizeof(*words.at));
    words.bytes = realloc(words.bytes, (words.n + 1u) * sizeof(*words.bytes));
    if (!words.at || !words.bytes)
      exit(2);
    words.at[words.n] = line;
    words.bytes[words.n++] = MIN(bytes, LONGEST_WORD);
    line = NULL;
    room = 0;
  }
  free(line);
  if (file)
    fclose(file);
  return words;
}

static void free_words(struct trace_words *words) {
  for (u32 i = 0; i < words->n; i++)
    free(words->at[i]);
  free(words->at);
  free(words->bytes);
}

static void set_option(struct tracegen_options *options, u32 option, char *value, u32 *events) {
  void *field = (char *)options + table[option].offset;
  switch (table[option].kind) {
  case TEXT:
    *(const char **)field = value;
    break;
  case U32:
    *(u32 *)field = (u32)strtoul(value, NULL, 0);
    break;
  case U64:
    *(u64 *)field = strtoull(value, NULL, 0);
    break;
  case REAL:
    *(double *)field = strtod(value, NULL);
    break;
  case YES:
  case NO:
    *(bool *)field = table[option].kind == YES;
    break;
  case FLAVOUR:
    options->flavour = strcmp(value, "gloo") == 0 ? TRACEGEN_GLOO : TRACEGEN_NCCL;
    options->phases |= options->flavour == TRACEGEN_GLOO;
    break;
  case EVENTS:
    *events = (u32)strtoul(value, NULL, 0);
    break;
  case WORDS:
    options->words = read_words(value);
    break;
  case CUT:
    options->cut_rank = (u32)strtoul(value, &value, 0);
    options->cut_bytes = *value == ':' ? strtoull(value + 1, NULL, 0) : 0;
    break;
  }
}

/* Sets the options. False if they are not valid. */
static bool parse(int argc, char **argv, struct tracegen_options *options) {
  struct option long_options[OPTIONS + 1] = {{0}};
  u32 events = 0;
  for (int i = 0; i < OPTIONS; i++)
    long_options[i] = (struct option){
        table[i].name, takes_value(table[i].kind) ? required_argument : no_argument, NULL, 256 + i};
  for (int got; (got = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
    if (got < 256)
      return false;
    set_option(options, (u32)got - 256, optarg, &events);
  }
  if (optind + 1 != argc)
    return false;
  options->directory = argv[optind];
  if (events)
    options->steps = events / events_per_step(options) + 1;
  return options->ranks > 0 && options->steps > 0 && options->buckets > 0 &&
         options->buckets <= 256 && options->kernels > 0 && options->islands > 0 &&
         options->islands <= options->ranks && options->ranks_per_host > 0 &&
         options->lone_hosts <= (options->ranks - 1) / options->ranks_per_host;
}

int main(int argc, char **argv) {
  struct tracegen_options options = tracegen_defaults();
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    print_help(stdout);
    return 0;
  }
  if (!parse(argc, argv, &options)) {
    print_help(stderr);
    return 2;
  }
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
  free_words(&options.words);
  return result == 0 ? 0 : 2;
}
