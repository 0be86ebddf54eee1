/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: reads the bytes as a trace file, alone and as two ranks of one run, up to the
 * timelines. For every input this must end, without an invalid memory access, with a model or a
 * reason.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/tscope/events/read_events.h"
#include "import/tscope/load_traces.h"
#include "model/rank_timeline.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static char directory[64];

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

static void write_file(const char *path, const u8 *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file)
    abort();
  if (bytes && fwrite(data, 1, bytes, file) != bytes)
    abort();
  fclose(file);
}

/* Writes the trace unchanged, and again with another rank number. */
static void write_ranks(const u8 *data, size_t bytes) {
  char path[128];
  snprintf(path, sizeof(path), "%s/0.tscope", directory);
  write_file(path, data, bytes);
  snprintf(path, sizeof(path), "%s/1.tscope", directory);
  struct tscope_file_header *header = malloc(bytes > sizeof(*header) ? bytes : sizeof(*header));
  if (!header)
    abort();
  memcpy(header, data, bytes);
  if (bytes >= sizeof(*header))
    header->rank ^= 1;
  write_file(path, (const u8 *)header, bytes);
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

static void remove_directory(void) {
  rmdir(directory);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  if (!directory[0]) {
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(directory, sizeof(directory), "%s/tscope-fuzz-XXXXXX", memory);
    if (!mkdtemp(directory))
      abort();
    atexit(remove_directory);
  }
  char path[128];
  read_from_memory(data, bytes);
  write_ranks(data, bytes);
  read_as_run();
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof(path), "%s/%d.tscope", directory, i);
    unlink(path);
  }
  return 0;
}
