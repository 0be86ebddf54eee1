/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: logs of training values and module statistics, the reader of lines that the
 * shim uses for the job's output, and that of TensorBoard's events (behind whose checksums fuzzing
 * would not come).
 */
#include <stdlib.h>
#include <string.h>

#include "format/scalar_line.h"
#include "fuzz_report.h"
#include "import/scalars/event_file.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

/* Copies the line to its own memory, so that a read beyond its end is detected. */
static void read_line(const u8 *data, size_t bytes) {
  struct scalar_line line;
  char *copy = malloc(bytes ? bytes : 1);
  if (!copy)
    abort();
  memcpy(copy, data, bytes);
  scalar_line_read(copy, scalar_line_clean(copy, bytes), &line);
  for (u32 i = 0; i < line.n; i++)
    if (scalar_role_of(line.values[i].name) != line.values[i].role)
      abort();
  free(copy);
}

static void read_event(const u8 *data, size_t bytes) {
  struct arena arena = {0};
  struct scalar_log log = {.arena = &arena};
  u8 *copy = malloc(bytes);
  if (!copy)
    abort();
  memcpy(copy, data, bytes);
  event_file_read_event(&log, copy, bytes);
  free(copy);
  free(log.values.at);
  free(log.names.at);
  arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  if (bytes) {
    read_line(data, bytes);
    read_event(data, bytes);
  }
  fuzz_report(data, bytes);
  return 0;
}
