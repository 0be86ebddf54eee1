/* SPDX-License-Identifier: MIT
 *
 * The directory of the traces may be on a server that does not answer, and who waits for a child
 * must not wait for that. A dormant process has no thread that could: a process of our own does it.
 * It begins where the caller waits for its children, perhaps in a signal handler, and uses only
 * system calls, the stack, and memory that is already there.
 */
#include "process/reaped.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "facts/own_file.h"
#include "facts/run_folders.h"
#include "format/clock_ns.h"
#include "format/default_directory.h"
#include "format/text_parts.h"
#include "format/tscope_format.h"
#include "inspect/kept_errno.h"
#include "inspect/pid_namespace.h"
#include "inspect/small_file.h"
#include "inspect/this_host.h"
#include "process/descriptors.h"
#include "process/out_of_memory_kills.h"
#include "record/cancellation.h"
#include "settings/process_environment.h"

struct death {
  u32 pid;
  int signal;
  char pid_in_name[24]; /* "-123-" */
  struct tscope_run_folders folders;
};

/* What is read of a header: a whole one would be much on a stack. */
struct read_header {
  char magic[8];
  u32 pid, reaped_signal;
  char host[64];
  u64 closed_realtime_ns, reaped_realtime_ns, oom_kills, pid_namespace;
  char memory_events[256];
};

#define READ(file, header, field)                                                                  \
  (pread(file, &(header)->field, sizeof(header)->field,                                            \
         (off_t)offsetof(struct tscope_file_header, field)) == (ssize_t)sizeof(header)->field)
#define WRITE(file, header, field)                                                                 \
  (pwrite(file, &(header)->field, sizeof(header)->field,                                           \
          (off_t)offsetof(struct tscope_file_header, field)) == (ssize_t)sizeof(header)->field)

/* The kills because of memory that the process itself could no longer count. Only where it was in
 * our own control group: no file is opened because a trace names it. */
__attribute__((noinline)) static void write_oom_kills(int file, struct read_header *header) {
  char own[sizeof(header->memory_events)];
  tscope_memory_events_file(own, sizeof(own));
  if (!*own || strncmp(own, header->memory_events, sizeof(own)) != 0)
    return;
  header->oom_kills = tscope_oom_kills(own);
  (void)WRITE(file, header, oom_kills);
}

/* True when it was this process's trace. */
static bool write_death(int folder, const char *name, void *more) {
  const struct death *death = more;
  struct read_header header;
  if (!tscope_ends_with(name, TSCOPE_FILE_SUFFIX) || !strstr(name, death->pid_in_name))
    return false;
  int file = tscope_open_own(folder, name, O_RDWR);
  if (file < 0)
    return false;
  bool is_it =
      READ(file, &header, magic) && READ(file, &header, pid) && READ(file, &header, host) &&
      READ(file, &header, closed_realtime_ns) && READ(file, &header, reaped_signal) &&
      READ(file, &header, memory_events) && READ(file, &header, pid_namespace) &&
      memcmp(header.magic, TSCOPE_MAGIC, sizeof(header.magic)) == 0 && header.pid == death->pid &&
      (!header.pid_namespace || header.pid_namespace == pid_namespace_of("self")) &&
      tscope_is_this_host(header.host) && !header.closed_realtime_ns && !header.reaped_signal;
  if (is_it) {
    header.reaped_signal = (u32)death->signal;
    header.reaped_realtime_ns = (u64)clock_ns(CLOCK_REALTIME);
    (void)(WRITE(file, &header, reaped_signal) && WRITE(file, &header, reaped_realtime_ns));
    write_oom_kills(file, &header);
  }
  close(file);
  return is_it;
}

__attribute__((noinline)) static bool search_run(int folder, const char *name,
                                                 struct death *death) {
  int run = tscope_open_own(folder, name, O_RDONLY | O_DIRECTORY);
  static char room[32768] __attribute__((aligned(8))); /* a run may have many thousand files */
  bool found = run >= 0 && folder_names_visit(run, room, sizeof(room), write_death, death);
  if (run >= 0)
    close(run);
  return found;
}

static bool search_own_run(int folder, const char *name, void *more) {
  struct death *death = more;
  return tscope_run_folders_have(&death->folders, name) && search_run(folder, name, death);
}

static struct death death_of(pid_t child, int signal) {
  struct death death = {.pid = (u32)child, .signal = signal};
  snprintf(death.pid_in_name, sizeof(death.pid_in_name), "-%d-", (int)child);
  tscope_run_folders_find(&death.folders, child);
  return death;
}

static void search(struct death *death) {
  static char room[4096] __attribute__((aligned(8)));
  const char *directory = tscope_environment_now("TSCOPE_DIR");
  char standard[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  tscope_directory_to_write(standard);
  int folder = tscope_open_own(AT_FDCWD, directory ? directory : standard, O_RDONLY | O_DIRECTORY);
  if (folder >= 0) {
    folder_names_visit(folder, room, sizeof(room), search_own_run, death);
    close(folder);
  }
}

void tscope_reaped_here(pid_t child, int signal) {
  struct death death = death_of(child, signal);
  search(&death);
}

/* Processes of our own that had not ended in time: their file system does not answer. */
static pid_t slow_writers[16];

/* Whether one is left. Those that have ended meanwhile are waited for. */
static bool some_are_slow(void) {
  bool some = false;
  for (size_t i = 0; i < LENGTH_OF(slow_writers); i++) {
    pid_t writer = __atomic_load_n(&slow_writers[i], __ATOMIC_RELAXED);
    if (!writer)
      continue;
    if (syscall(SYS_wait4, writer, NULL, WNOHANG | __WCLONE, NULL) == 0)
      some = true;
    else
      __atomic_store_n(&slow_writers[i], 0, __ATOMIC_RELAXED);
  }
  return some;
}

/* It keeps open no pipe of the job's, for whose end somebody may wait. */
static int write_and_end(void *death) {
  tscope_descriptors_close_from(0);
  search(death);
  syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

/* A process that writes, as fork() makes it, but that sends no signal when it ends: so the job's
 * own waits do not see it. Its memory is a copy, which takes time in proportion: a process with
 * much memory does not do this. It has a stack of its own, since that of a handler may be small.
 * Negative if there is none. */
static pid_t start_writer(struct death *death) {
  /* The C library writes to it before the process begins: other threads take another. */
  static char stacks[8][64 << 10] __attribute__((aligned(16)));
  static u32 turn;
  const u64 most_bytes = 2u << 30;
  char text[96];
  u64 pages[3]; /* of all, resident, shared */
  if (small_file_read("/proc/self/statm", text, sizeof(text)) <= 0 ||
      !leading_numbers(text, pages, LENGTH_OF(pages)) ||
      (pages[1] > pages[2] && (pages[1] - pages[2]) * (u64)sysconf(_SC_PAGESIZE) > most_bytes))
    return -1;
  char *stack = stacks[__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % 8];
  return (pid_t)clone(write_and_end, stack + sizeof(stacks[0]), 0, death);
}

/* Some milliseconds suffice where the file system answers. False if it has not ended after 100. */
static bool wait_for_writer(pid_t writer) {
  long ns = 50000;
  for (int i = 0; i < 36; i++, ns = ns < 2000000 ? 2 * ns : ns) {
    if (syscall(SYS_wait4, writer, NULL, WNOHANG | __WCLONE, NULL) != 0)
      return true;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
  }
  return false;
}

static void remember_slow(pid_t writer) {
  for (size_t i = 0; i < LENGTH_OF(slow_writers); i++) {
    pid_t none = 0;
    if (__atomic_compare_exchange_n(&slow_writers[i], &none, writer, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return;
  }
}

void tscope_reaped(pid_t child, int signal) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  if (some_are_slow())
    return;
  struct death death = death_of(child, signal);
  sigset_t all, before; /* no handler of the job's runs in the new process */
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t writer = start_writer(&death);
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (writer > 0 && !wait_for_writer(writer))
    remember_slow(writer);
}
