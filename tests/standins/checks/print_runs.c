/* SPDX-License-Identifier: MIT
 *
 * print_runs DIRECTORY: when each collective ran, as the analyzer pairs calls and kernels. Prints a
 * line "rank comm seq start end in-graph" for each call, in nanoseconds of one clock; start and end
 * are 0 0 if they are not known. The last line is "told N of M": of the M calls in graphs, N were
 * identified by their graph nodes.
 */
#include <stdio.h>

#include "import/tscope/load_traces.h"
#include "model/building.h"

static void print_rank(const struct rank_events *events, u32 rank) {
  for (u32 i = 0; i < events->calls.n; i++) {
    const struct rank_call *call = &events->calls.at[i];
    const struct rank_run *run = call->run == INDEX_NONE ? NULL : &events->runs.at[call->run];
    if (call->comm == INDEX_NONE)
      continue;
    printf("%u %u%s %u %lld %lld %d\n", rank, events->comms[call->comm].comm,
           call->op >= TSCOPE_OP_SEND ? "p" : "", call->seq, run ? (long long)run->start : 0,
           run ? (long long)run->end : 0, call->replayed);
  }
}

int main(int argc, char **argv) {
  struct model *model;
  char why[512];
  if (argc != 2 || model_load(argv[1], NULL, &model, why, sizeof(why))) {
    fprintf(stderr, "print_runs: %s\n", argc == 2 ? why : "DIRECTORY");
    return 1;
  }
  u64 known = 0, all = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    print_rank(model_events(model, r), model->ranks[r].rank);
    known += model->ranks[r].replayed_known;
    all += model->ranks[r].replayed_runs;
  }
  printf("told %llu of %llu\n", (unsigned long long)known, (unsigned long long)all);
  model_free(model);
  return 0;
}
