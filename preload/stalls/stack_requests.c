/* SPDX-License-Identifier: MIT
 *
 * Answers who asks what the process is doing now: format/stack_request.h. On the helper, so that it
 * costs the job's threads nothing. However often it is asked, that takes at most one part in
 * COST_SHARE of a processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "callsites/python_here.h"
#include "facts/own_file.h"
#include "format/stack_request.h"
#include "format/text_parts.h"
#include "record/families.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"
#include "settings/env.h"
#include "stalls/threads_now.h"

/* All of this runs on the helper's stack. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

enum { COST_SHARE = 20 };

static struct {
  char folder[sizeof(tscope_trace.path)];
  char file[300], unfinished[304];
} names;

static struct {
  int file;
  bool failed;
  size_t written;
  u32 used;
  char bytes[8192];
} out;

static void flush(void) {
  if (!out.failed && out.used)
    out.failed = write(out.file, out.bytes, out.used) != (ssize_t)out.used;
  out.written += out.used;
  out.failed |= out.written > TSCOPE_ANSWER_MOST;
  out.used = 0;
}

static void put(const char *text, size_t bytes) {
  if (out.used + bytes > sizeof(out.bytes))
    flush();
  memcpy(out.bytes + out.used, text, bytes);
  out.used += (u32)bytes;
}

static void put_word(const char *word) {
  put(word, strlen(word));
}

static void put_number(u64 number) {
  char text[24];
  put(text, (size_t)snprintf(text, sizeof(text), " %llu", (unsigned long long)number));
}

static void put_letter(char letter) {
  const char text[] = {' ', letter > ' ' && letter < 0x7f ? letter : '-'};
  put(text, sizeof(text));
}

/* `text` may be NULL: unknown. */
static void put_text(const char *text) {
  put_word(!text ? " -" : *text ? " " : " %");
  for (; text && *text; text++) {
    unsigned char byte = (unsigned char)*text;
    bool plain = byte > ' ' && byte != '%' && byte != 0x7f && !(byte == '-' && !text[1]);
    char code[4];
    if (plain)
      put(text, 1);
    else
      put(code, (size_t)snprintf(code, sizeof(code), "%%%02X", byte));
  }
}

static const char *known(const char *text) {
  return *text ? text : NULL;
}

static void put_place(const struct thread_state *state) {
  put_text(known(state->wait));
  put_text(known(state->call));
  put_text(known(state->file));
}

static void put_thread(const struct thread_state *state, void *nothing) {
  (void)nothing;
  put_word("thread");
  put_number(state->tid);
  put_letter(state->state);
  put_text(known(state->name));
  put_place(state);
  put_number(state->waits_for);
  put_word("\n");
}

static void put_peer(u32 pid, const struct thread_state *state, void *nothing) {
  (void)nothing;
  put_word("peer");
  put_number(pid);
  put_letter(state->state);
  put_place(state);
  put_word("\n");
}

static void put_frame(struct stack_walk *walk, u32 i) {
  const struct python_location *place = &walk->place;
  bool is_there, read = stack_frame_place(walk, i, getpid(), &is_there);
  put_word("frame");
  put_number(read ? place->line : 0);
  put_number(read ? place->first_line : 0);
  put_text(read ? place->file : NULL);
  put_text(read ? place->function : NULL);
  put_word("\n");
}

static void put_stack(const struct python_thread *thread, struct stack_walk *walk, bool moved,
                      void *nothing) {
  (void)nothing;
  put_word("stack");
  put_number(thread->tid);
  put_number(thread->holds_gil);
  put_number(moved);
  put_number(walk && walk->more);
  put_word("\n");
  for (u32 i = 0; walk && i < walk->n && !out.failed; i++)
    put_frame(walk, i);
}

/* Closes the file; what was written can then be seen on other hosts too. */
static bool finish(void) {
  flush();
  out.failed |= close(out.file) != 0;
  return !out.failed;
}

static bool begin(int file) {
  out.file = file;
  out.used = 0;
  out.failed = file < 0;
  return !out.failed;
}

static int make_file(int folder) {
  int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int file = openat(folder, names.unfinished, flags, 0600);
  if (file < 0 && errno == EEXIST && unlinkat(folder, names.unfinished, 0) == 0)
    file = openat(folder, names.unfinished, flags, 0600);
  if (file >= 0 && strcmp(tscope_env.access, "group") == 0)
    fchmod(file, 0640);
  return file;
}

/* The job's: this thread is in one of its own. */
static void put_folder(void) {
  static char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/cwd", folder, sizeof(folder) - 1);
  folder[length > 0 ? length : 0] = '\0';
  put_text(known(folder));
}

/* What needs none of the process's memory. The file appears when this is written. */
static bool answer_threads(int folder, u64 number) {
  char line[64];
  out.written = 0;
  if (!begin(make_file(folder)))
    return false;
  put(line,
      (size_t)snprintf(line, sizeof(line), TSCOPE_REQUEST_FORMAT, (unsigned long long)number));
  put_word("process");
  put_number(threads_now_count());
  put_text(threads_now_python_why());
  put_folder();
  put_word("\n");
  threads_now_states(put_thread, NULL);
  threads_now_peers(put_peer, NULL);
  if (threads_now_python_why())
    put_word("end\n");
  return finish() && renameat(folder, names.unfinished, folder, names.file) == 0;
}

/* Reading the process's memory may wait for a thread that holds its memory map: so only now. */
static void answer_stacks(int folder) {
  if (!begin(tscope_open_own(folder, names.file, O_WRONLY | O_APPEND)))
    return;
  threads_now_stacks(put_stack, NULL);
  put_word("end\n");
  finish();
}

static void answer(int folder, u64 number) {
  if (!answer_threads(folder, number))
    unlinkat(folder, names.unfinished, 0);
  else if (!threads_now_python_why())
    answer_stacks(folder);
}

static void set_names(void) {
  const char *name = strrchr(tscope_trace.path, '/') + 1;
  snprintf(names.folder, sizeof(names.folder), "%.*s", (int)(name - tscope_trace.path),
           tscope_trace.path);
  snprintf(names.file, sizeof(names.file), TSCOPE_ANSWER_FILE, name);
  snprintf(names.unfinished, sizeof(names.unfinished), "%s.new", names.file);
}

/* The number of the request that is there; 0: none. */
static u64 read_request(int folder) {
  static const char start[] = TSCOPE_REQUEST_START;
  char text[64];
  int file = tscope_open_own_or_roots(folder, TSCOPE_REQUEST_FILE, O_RDONLY);
  ssize_t got = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
  if (file >= 0)
    close(file);
  text[MAX(got, 0)] = '\0';
  return tscope_begins_with(text, start) ? strtoull(text + strlen(start), NULL, 16) : 0;
}

/* Opening the folder is what makes NFS ask the server what has changed in it. */
static void look(void) {
  static u64 answered, not_before;
  u64 now = tscope_clock_ns(CLOCK_MONOTONIC);
  if (now < not_before || tscope_trace_has_ended())
    return;
  if (!names.folder[0])
    set_names();
  int folder = tscope_open_own(AT_FDCWD, names.folder, O_RDONLY | O_DIRECTORY);
  u64 number = folder < 0 ? 0 : read_request(folder);
  if (number && number != answered) {
    u64 before = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    answered = number;
    answer(folder, number);
    not_before = now + COST_SHARE * (tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
  }
  if (folder >= 0)
    close(folder);
}

/* The processes of a run, which may begin at the same moment, do not all look in the same one. */
static void watch(void) {
  static u32 calls, calls_per_look, first;
  if (!calls_per_look) {
    const struct tscope_file_header *header = tscope_trace.header;
    calls_per_look = TSCOPE_TICKS_PER_S * tscope_seconds_between_looks(header->world_size);
    first = (u32)((header->start_ticks ^ header->pid) * 0x9e3779b97f4a7c15u >> 32) % calls_per_look;
  }
  if (calls++ % calls_per_look == first)
    look();
}

const struct tscope_family tscope_stack_requests_family = {
    .wake = threads_now_find_python,
    .watch = watch,
};
