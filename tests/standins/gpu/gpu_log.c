/* SPDX-License-Identifier: MIT
 *
 * The op log: what the simulator computed, one JSON object per line, in
 * $STANDIN_LOG/rank<RANK>.jsonl. truth.py computes the truth of a run from it. README.md describes
 * the lines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "order.h"
#include "standin.h"

static FILE *file;

static const char *const kinds[] = {"kernel", "copy", "fill",      "event",
                                    "wait",   "call", "collective"};

static void close_log(void) {
  sim_lock();
  if (file)
    fclose(file);
  file = NULL;
  sim_unlock();
}

__attribute__((constructor)) static void open_log(void) {
  const char *directory = getenv("STANDIN_LOG"), *rank = getenv("RANK");
  if (!directory || !*directory || !rank)
    return;
  char path[4096];
  snprintf(path, sizeof(path), "%s/rank%s.jsonl", directory, rank);
  file = fopen(path, "we");
  if (!file) {
    perror(path);
    return;
  }
  setvbuf(file, NULL, _IOFBF, 1 << 20);
  atexit(close_log);
}

void sim_log_op(const struct sim_op *op) {
  if (!file)
    return;
  fprintf(file,
          "{\"op\":%llu,\"kind\":\"%s\",\"stream\":%u,\"launched\":%lld,\"start\":%lld,"
          "\"end\":%lld,\"previous\":%llu",
          (unsigned long long)op->id, kinds[op->kind], op->stream->id, (long long)op->launched,
          (long long)op->start, (long long)op->end, (unsigned long long)op->previous);
  if (op->name)
    fprintf(file, ",\"name\":\"%s\"", op->name);
  if (op->bytes)
    fprintf(file, ",\"bytes\":%zu", op->bytes);
  if (op->kind == SIM_COPY && op->copy_kind == SIM_PEER)
    fputs(",\"peer\":true", file);
  fprintf(file, ",\"after\":[");
  for (unsigned i = 0; i < op->n_waits_for; i++)
    fprintf(file, "%s%llu", i ? "," : "", (unsigned long long)op->waits_for[i]);
  fputs("]", file);
  if (op->work->describe)
    op->work->describe(op, file);
  fputs("}\n", file);
}

void sim_log_sync(struct sim_op *const *ops, unsigned n, int64_t from, int64_t to) {
  if (!file)
    return;
  fprintf(file, "{\"sync\":[");
  for (unsigned i = 0; i < n; i++)
    fprintf(file, "%s%llu", i ? "," : "", (unsigned long long)ops[i]->id);
  fprintf(file, "],\"from\":%lld,\"to\":%lld}\n", (long long)from, (long long)to);
}

SIM_API void standin_mark(const char *name, int64_t value) {
  sim_lock();
  if (file)
    fprintf(file, "{\"mark\":\"%s\",\"value\":%lld,\"at\":%lld}\n", name, (long long)value,
            (long long)clock_now());
  sim_unlock();
}

SIM_API int64_t standin_now_ns(void) {
  return clock_now();
}
