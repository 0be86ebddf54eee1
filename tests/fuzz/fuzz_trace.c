/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: reads the bytes as a trace file, alone and as two ranks of one run, up to the
 * timelines. For every input this must end, without an invalid memory access, with a model or a
 * reason.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_folder.h"
#include "import/tscope/events/read_events.h"
#include "import/tscope/load_traces.h"
#include "model/rank_timeline.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static void read_from_memory(const u8 *data, size_t bytes) {
  struct trace_file file;
  struct rank_events events;
  char why[256];
  if (trace_file_open_memory(&file, data, bytes, why, sizeof(why)) < 0)
    return;
  rank_events_read(&events, &file, NULL);
  rank_events_release(&events);
  trace_file_close(&file);
}

/* Writes the trace unchanged, and again with another rank number. */
static void write_ranks(const u8 *data, size_t bytes) {
  scratch_write(directory, "0.tscope", data, bytes);
  struct tscope_file_header *header = malloc(bytes > sizeof(*header) ? bytes : sizeof(*header));
  if (!header)
    abort();
  memcpy(header, data, bytes);
  if (bytes >= sizeof(*header))
    header->rank ^= 1;
  scratch_write(directory, "1.tscope", header, bytes);
  free(header);
}

static void read_as_run(void) {
  char why[512];
  struct model *model;
  if (model_load(directory, &(struct model_options){.threads = 1}, &model, why, sizeof(why)) < 0)
    return;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct timeline timeline;
    if (timeline_load(model, r, &timeline) < 0)
      continue;
    for (u32 i = 0; i < timeline.n_spans; i++)
      if (!timeline_name(&timeline, timeline.spans[i].name))
        abort();
    timeline_release(&timeline);
  }
  for (u32 a = 0; a < model->n_arrivals; a++)
    if (model->arrivals[a].step >= (i32)model->steps.n)
      abort();
  model_free(model);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  make_directory();
  read_from_memory(data, bytes);
  write_ranks(data, bytes);
  read_as_run();
  return 0;
}
