/* SPDX-License-Identifier: MIT */
#include "inspect/thread_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "inspect/kept_errno.h"
#include "inspect/pid_namespace.h"
#include "inspect/python_memory.h"
#include "inspect/small_file.h"
#include "inspect/system_calls.def"

/* What not every machine's kernel has by that name. */
#ifndef SYS_open
#define SYS_open -1
#define SYS_stat -1
#define SYS_lstat -1
#define SYS_access -1
#define SYS_mkdir -1
#define SYS_rmdir -1
#define SYS_unlink -1
#define SYS_rename -1
#define SYS_epoll_wait -1
#define SYS_poll -1
#define SYS_select -1
#define SYS_pause -1
#endif
#ifndef SYS_renameat
#define SYS_renameat -1
#endif
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif

enum call_kind { NOTHING, DESCRIPTOR, PATH, PATH_AT };

#define TSCOPE_ACTIVITY_FILE 255 /* the file decides */
static const struct system_call {
  i32 number;
  enum call_kind kind;
  u8 waits;
  const char *name;
} calls[] = {
#define X(name, KIND, WAITS) {SYS_##name, KIND, TSCOPE_ACTIVITY_##WAITS, #name},
    TSCOPE_SYSTEM_CALLS(X)
#undef X
};

static const struct system_call *find_call(i32 number) {
  for (size_t i = 0; i < LENGTH_OF(calls); i++)
    if (calls[i].number == number)
      return &calls[i];
  return NULL;
}

/* What a thread waits for that reads or writes this file. */
static u8 waits_for_file(const char *file) {
  static const struct {
    const char *begin;
    u8 what;
  } kinds[] = {{"socket:", TSCOPE_ACTIVITY_NETWORK},
               {"pipe:", TSCOPE_ACTIVITY_PIPE},
               {"anon_inode:", TSCOPE_ACTIVITY_EVENTS},
               {"/dev/pts/", TSCOPE_ACTIVITY_PIPE},
               {"/dev/tty", TSCOPE_ACTIVITY_PIPE},
               {"/dev/shm/", TSCOPE_ACTIVITY_DISK},
               {"/dev/", TSCOPE_ACTIVITY_DEVICE},
               {"/", TSCOPE_ACTIVITY_DISK},
               {"...", TSCOPE_ACTIVITY_DISK}}; /* the end of a long path */
  for (size_t i = 0; i < LENGTH_OF(kinds); i++)
    if (tscope_begins_with(file, kinds[i].begin))
      return kinds[i].what;
  return TSCOPE_ACTIVITY_BLOCKED;
}

/* How Python slept up to 3.10, for one. */
static bool waits_for_no_file(const struct thread_call *call) {
  if (call->number == SYS_poll || call->number == SYS_ppoll)
    return !call->arguments[1];
  return (call->number == SYS_select || call->number == SYS_pselect6) && !call->arguments[0];
}

u8 thread_waits_for(pid_t pid, u32 tid, const struct thread_call *call) {
  const struct system_call *known = find_call(call->number);
  if (call->number < 0)
    return TSCOPE_ACTIVITY_PAGES;
  if (waits_for_no_file(call))
    return TSCOPE_ACTIVITY_SLEEP;
  if (!known || known->waits != TSCOPE_ACTIVITY_FILE)
    return known ? known->waits : TSCOPE_ACTIVITY_BLOCKED;
  char file[32];
  thread_open_file(pid, tid, (i32)call->arguments[0], file, sizeof(file));
  return waits_for_file(file);
}

u8 thread_waits_by_name(const char *name, const char *file) {
  for (size_t i = 0; name && i < LENGTH_OF(calls); i++)
    if (strcmp(calls[i].name, name) == 0)
      return calls[i].waits != TSCOPE_ACTIVITY_FILE ? calls[i].waits
                                                    : waits_for_file(file ? file : "");
  return TSCOPE_ACTIVITY_UNKNOWN;
}

void thread_path(char path[THREAD_PATH_BYTES], pid_t pid, u32 tid, const char *file) {
  char room[16];
  snprintf(path, THREAD_PATH_BYTES, "/proc/%s/task/%u/%s", proc_name(pid, room), tid, file);
}

ssize_t thread_file_read(pid_t pid, u32 tid, const char *file, char *text, size_t bytes) {
  char path[THREAD_PATH_BYTES];
  thread_path(path, pid, tid, file);
  return small_file_read(path, text, bytes);
}

struct thread_call thread_call_of(const char *text) {
  char *at;
  struct thread_call call = {.number = (i32)strtol(text, &at, 10)};
  for (int i = 0; i < 2; i++)
    call.arguments[i] = strtoull(at, &at, 16);
  return call;
}

void thread_open_file(pid_t pid, u32 tid, i32 number, char *text, size_t bytes) {
  char path[THREAD_PATH_BYTES], file[16];
  snprintf(file, sizeof(file), "fd/%d", number);
  thread_path(path, pid, tid, file);
  ssize_t got = readlink(path, text, bytes - 1);
  text[got > 0 ? got : 0] = '\0';
}

bool thread_times(const char *text, u64 times[3]) {
  return leading_numbers(text, times, 3) && (times[0] || times[1]);
}

struct found_threads {
  u32 *tids, most, n;
};

static bool add_thread(int folder, const char *name, void *with) {
  struct found_threads *found = with;
  u32 tid = (u32)leading_number(name, UINT32_MAX, NULL);
  (void)folder;
  if (tid && found->n < found->most)
    found->tids[found->n] = tid;
  found->n += tid != 0;
  return false;
}

u32 thread_list(pid_t pid, u32 *tids, u32 most) {
  char path[32], room[16];
  struct found_threads found = {tids, most, 0};
  snprintf(path, sizeof(path), "/proc/%s/task", proc_name(pid, room));
  folder_names_of(path, add_thread, &found);
  return found.n;
}

u32 thread_children(pid_t pid, u32 tid, u32 *pids, u32 most) {
  static char text[4096];
  const char *end;
  u32 n = 0;
  if (thread_file_read(pid, tid, "children", text, sizeof(text)) <= 0)
    return 0;
  for (const char *at = text; n < most; at = end + 1) {
    u64 child = leading_number(at, UINT32_MAX, &end);
    if (end == at || *end != ' ') /* the last may be cut */
      break;
    pids[n++] = (u32)child;
  }
  return n;
}

static bool read_stat(pid_t pid, struct thread_state *state) {
  char text[256];
  thread_file_read(pid, state->tid, "stat", text, sizeof(text));
  const char *letter = stat_field(text, 3);
  stat_name(text, state->name, sizeof(state->name));
  state->state = letter ? *letter : '\0';
  return letter;
}

static void copy_path_end(char *to, size_t bytes, const char *path) {
  size_t length = strlen(path);
  if (length < bytes)
    memcpy(to, path, length + 1);
  else
    snprintf(to, bytes, "...%s", path + length - (bytes - 4));
}

/* A text in the process's memory, read in pieces that lie on one page each. */
static void read_text(pid_t pid, u64 address, char *to, size_t bytes) {
  const struct python_process process = {.pid = pid};
  const size_t piece = 32;
  size_t length = 0;
  while (length + piece < bytes) {
    size_t step = piece - (address + length) % piece;
    if (!python_read_process(&process, address + length, to + length, step))
      break;
    to[length + step] = '\0';
    if (strlen(to + length) < step)
      return;
    length += step;
  }
  to[length] = '\0';
}

static void find_file(pid_t pid, struct thread_state *state, enum call_kind kind,
                      const u64 *arguments) {
  char text[512] = "";
  if (kind == PATH || kind == PATH_AT)
    read_text(pid, arguments[kind == PATH_AT], text, sizeof(text));
  else if (kind == DESCRIPTOR)
    thread_open_file(pid, state->tid, (i32)arguments[0], text, sizeof(text));
  copy_path_end(state->file, sizeof(state->file), text);
}

static void read_call(pid_t pid, struct thread_state *state) {
  char text[256];
  thread_file_read(pid, state->tid, "syscall", text, sizeof(text));
  if (text[0] < '0' || text[0] > '9') /* "running", -1, or not to be read */
    return;
  struct thread_call call = thread_call_of(text);
  const struct system_call *known = find_call(call.number);
  state->waits_for = thread_waits_for(pid, state->tid, &call);
  snprintf(state->call, sizeof(state->call), "%d", call.number);
  if (!known)
    return;
  snprintf(state->call, sizeof(state->call), "%s", known->name);
  find_file(pid, state, known->kind, call.arguments);
}

static void read_wait(pid_t pid, struct thread_state *state) {
  char text[sizeof(state->wait)];
  if (thread_file_read(pid, state->tid, "wchan", text, sizeof(text)) > 0 && strcmp(text, "0") != 0)
    memcpy(state->wait, text, sizeof(text));
}

bool thread_state_read(pid_t pid, u32 tid, struct thread_state *state) {
  TSCOPE_KEEP_ERRNO;
  *state = (struct thread_state){.tid = tid};
  bool there = read_stat(pid, state);
  if (there && state->state != 'R') {
    read_call(pid, state);
    read_wait(pid, state);
  }
  return there;
}
