/* SPDX-License-Identifier: MIT
 *
 * walk FILE...: reads traces according to docs/trace-format.md, without the analyzer's reader.
 * Prints one line per file: recorded launches, all records, records counted as lost, whether the
 * process ended normally. Exits with 1 if a committed record cannot be read.
 */
#include "trace.h"

static void count_launches(const struct trace_record *at, void *launches) {
  *(unsigned long long *)launches += at->record->type == TSCOPE_REC_LAUNCH;
}

static int walk(const char *path) {
  struct trace trace;
  unsigned long long launches = 0, lost = 0;
  if (!trace_open(&trace, path))
    return 1;
  long records = trace_walk(&trace, count_launches, &launches);
  lost = trace_all_lost(&trace) - trace.header->lost[TSCOPE_LOSS_SHAPES] -
         trace.header->lost[TSCOPE_LOSS_STRINGS];
  if (records < 0)
    fprintf(stderr, "%s: a chunk cannot be read\n", path);
  else
    printf("%llu %ld %llu %d\n", launches, records, lost, trace.header->closed_realtime_ns != 0);
  trace_close(&trace);
  return records < 0;
}

int main(int argc, char **argv) {
  int status = 0;
  for (int i = 1; i < argc; i++)
    status |= walk(argv[i]);
  return status;
}
