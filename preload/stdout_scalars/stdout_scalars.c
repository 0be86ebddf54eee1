/* SPDX-License-Identifier: MIT
 *
 * Values of training in what the job prints, unless TSCOPE_SCALARS says otherwise, and the
 * exception that a rank may end with. Python prints through write(), called from the program or
 * from Python's library: their slots for it are pointed here when the process wakes. Nothing is
 * exported under that name, so that a process that does not train writes as if tscope were not
 * there.
 *
 * What is written passes on unchanged, and first; only then is it parsed. C's own stdio writes
 * inside the C library and is not seen.
 */
#include <string.h>
#include <unistd.h>

#include "format/scalar_line.h"
#include "process/process_end.h"
#include "record/families.h"
#include "record/floats.h"
#include "resolve/call_slots.h"
#include "resolve/search.h"
#include "settings/env.h"
#include "stdout_scalars/exit_slot.h"

#define MAX_PARSED_BYTES (256u << 10) /* bytes of one call: checkpoints go to files, not here */

/* The line that is being written to one of the two streams. */
struct output_line {
  bool busy;   /* a thread is at it */
  bool broken; /* something of it was missed: nothing is read until the next one begins */
  u32 n;
  char text[SCALAR_LINE_BYTES];
};

static struct output_line lines[2];
static bool is_parsed[2]; /* standard output, standard error */
static ssize_t (*write_real)(int, const void *, size_t);

static void record_values(struct tscope_thread *thread, const struct scalar_line *line) {
  u64 now = tscope_ticks();
  for (u32 i = 0; i < line->n; i++) {
    struct tscope_scalar_record scalar = {.step = line->step,
                                          .name = tscope_string(thread, line->values[i].name)};
    memcpy(&scalar.bits, &line->values[i].value, sizeof(scalar.bits));
    tscope_retain(thread, now, TSCOPE_REC_SCALAR, 0, &scalar, sizeof(scalar));
  }
}

static void finish_line(struct tscope_thread *thread, struct output_line *line) {
  struct scalar_line read;
  TSCOPE_KEEP_FLOATS;
  size_t n = line->broken ? 0 : scalar_line_clean(line->text, line->n);
  if (n && scalar_line_read(line->text, n, &read))
    record_values(thread, &read);
  line->n = 0;
  line->broken = false;
}

static void add_text(struct tscope_thread *thread, struct output_line *line, const char *text,
                     size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\n' || text[i] == '\r')
      finish_line(thread, line);
    else if (line->n < sizeof(line->text))
      line->text[line->n++] = text[i];
  }
}

/* Never waits: what two threads write at once is mixed up anyway. */
static void parse_output(struct tscope_thread *thread, struct output_line *line, const void *text,
                         size_t n) {
  if (__atomic_exchange_n(&line->busy, true, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&line->broken, true, __ATOMIC_RELAXED);
    return;
  }
  add_text(thread, line, text, MIN(n, MAX_PARSED_BYTES));
  if (n > MAX_PARSED_BYTES)
    line->broken = true;
  __atomic_store_n(&line->busy, false, __ATOMIC_RELEASE);
}

static ssize_t output_write(int fd, const void *text, size_t n) {
  ssize_t written = write_real(fd, text, n);
  if (written <= 0 || fd < STDOUT_FILENO || fd > STDERR_FILENO)
    return written;
  TSCOPE_KEEP_ERRNO;
  if (fd == STDERR_FILENO && tscope_env.exceptions && tscope_is_live())
    tscope_end_read_stderr(text, (size_t)written);
  if (!is_parsed[fd - STDOUT_FILENO])
    return written;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (thread) {
    parse_output(thread, &lines[fd - STDOUT_FILENO], text, (size_t)written);
    tscope_leave(thread);
  }
  return written;
}

static void output_wake(struct tscope_thread *thread) {
  const char *which = tscope_env.scalars;
  exit_slot_install();
  bool both = strcmp(which, "both") == 0;
  is_parsed[0] = both || strcmp(which, "stdout") == 0;
  is_parsed[1] = both || strcmp(which, "stderr") == 0;
  bool values = is_parsed[0] || is_parsed[1];
  if (!values && !tscope_env.exceptions)
    return;
  void *real = tscope_first_definition("write");
  memcpy(&write_real, &real, sizeof(real));
  bool replaced = real && tscope_slots_replace("write", (const void *)output_write);
  if (!replaced && values)
    tscope_info(thread, TSCOPE_INFO_FEATURE, "no calls of write() to follow", "values printed");
}

const struct tscope_family tscope_stdout_scalars_family = {.wake = output_wake};
