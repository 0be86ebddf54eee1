/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: the bytes are what a job writes to standard error, in one piece and in pieces
 * of all lengths. The same must be kept of both, nothing else of the header may change, and the
 * next traceback must be read as if nothing had been before it. The rest of the shim is stood in
 * for.
 */
#include <stdlib.h>
#include <string.h>

#include "process/out_of_memory_kills.h"
#include "process/process_end.h"
#include "process/workers.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

struct tscope_trace tscope_trace;
struct tscope_clock tscope_clock = {.hz = 1000};
static struct tscope_live live;
struct tscope_live *tscope_live = &live;
bool tscope_ticks_are_monotonic_clock = true;

u64 tscope_ticks_slow(void) {
  return 1;
}

void tscope_recording_end(void) {}

bool tscope_trace_is_ours(void) {
  return false;
}

void tscope_memory_events_file(char *path, size_t bytes) {
  (void)bytes;
  *path = '\0';
}

u64 tscope_oom_kills(const char *path) {
  (void)path;
  return 0;
}

static void expect(bool true_of_any) {
  if (!true_of_any)
    abort();
}

static void write_text(const char *text) {
  tscope_end_read_stderr(text, strlen(text));
}

/* Ends any line and any traceback that is open. */
static void finish(void) {
  write_text("\nx\n");
}

/* Pieces of 1, 2, 3 ... bytes, each with an end of its own that ASan guards. */
static void write_pieces(const u8 *data, size_t bytes) {
  for (size_t at = 0, n = 1; at < bytes; at += n++) {
    n = n < bytes - at ? n : bytes - at;
    char *piece = malloc(n);
    expect(piece != NULL);
    memcpy(piece, data + at, n);
    tscope_end_read_stderr(piece, n);
    free(piece);
  }
}

static void check(const struct tscope_file_header *header) {
  struct tscope_file_header others = *header;
  static const struct tscope_file_header untouched;
  expect(memchr(header->exception, 0, sizeof(header->exception)) != NULL);
  expect(memchr(header->exception_place, 0, sizeof(header->exception_place)) != NULL);
  memset(others.exception, 0, sizeof(others.exception));
  memset(others.exception_place, 0, sizeof(others.exception_place));
  others.exception_ticks = 0;
  expect(memcmp(&others, &untouched, sizeof(others)) == 0);
}

static void read_known(struct tscope_file_header *header) {
  write_text("Traceback (most recent call last):\n  File \"/home/me/train.py\", line 3, in main\n"
             "    step()\nValueError: known\n");
  expect(strcmp(header->exception, "ValueError: known") == 0);
  expect(strcmp(header->exception_place, "main\n3\n/home/me/train.py") == 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  struct tscope_file_header *whole = calloc(1, sizeof(*whole)),
                            *pieces = calloc(1, sizeof(*pieces));
  expect(whole && pieces);
  tscope_trace.header = whole;
  tscope_end_read_stderr((const char *)data, bytes);
  finish();
  tscope_trace.header = pieces;
  write_pieces(data, bytes);
  finish();
  check(whole);
  expect(strcmp(whole->exception, pieces->exception) == 0);
  expect(strcmp(whole->exception_place, pieces->exception_place) == 0);
  read_known(pieces);
  free(whole);
  free(pieces);
  return 0;
}
