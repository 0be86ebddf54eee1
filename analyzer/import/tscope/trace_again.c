/* SPDX-License-Identifier: MIT */
#include "import/tscope/trace_again.h"

#include <errno.h>
#include <stdio.h>

#include "import/tscope/events/read_events.h"
#include "join/join_ranks.h"

static bool is_of_process(const struct tscope_file_header *header, const struct model *model,
                          const struct rank *rank) {
  return header->pid == rank->pid && strcmp(header->host, rank->host) == 0 &&
         strcmp(header->run, model->run) == 0;
}

int trace_read_again(const struct model *model, u32 rank, struct kernel_names *kernel_names,
                     struct rank_events *events, char *why, size_t why_bytes) {
  const struct rank *of = &model->ranks[rank];
  struct trace_file file;
  int error = trace_file_open(&file, of->path, why, why_bytes);
  if (error)
    return error;
  bool same = is_of_process(&file.header, model, of);
  if (same)
    error = rank_events_read_in_budget(events, &file, kernel_names, why, why_bytes);
  trace_file_close(&file);
  if (error)
    return error;
  if (same && events->definitions->records == of->records && join_again(model, rank, events))
    return 0;
  if (same)
    rank_events_release(events);
  snprintf(why, why_bytes, same ? "has changed since it was reduced" : "is of another process");
  return -ESTALE;
}
