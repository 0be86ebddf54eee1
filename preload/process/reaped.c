/* SPDX-License-Identifier: MIT
 *
 * Runs where the caller waits for its children, perhaps in a signal handler. So it uses only system
 * calls and the stack.
 */
#include "process/reaped.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "facts/file_name.h"
#include "facts/own_file.h"
#include "format/default_directory.h"
#include "format/tscope_format.h"
#include "inspect/kept_errno.h"
#include "inspect/pid_namespace.h"
#include "process/out_of_memory_kills.h"
#include "record/cancellation.h"

/* As the kernel has it. */
struct entry {
  u64 inode;
  i64 offset;
  u16 bytes;
  u8 type;
  char name[];
};

/* Calls `each` with the names in a folder until it returns true. */
static bool visit_names(int folder, bool (*each)(int folder, const char *name, void *more),
                        void *more) {
  char room[1024] __attribute__((aligned(8)));
  long got;
  while ((got = syscall(SYS_getdents64, folder, room, sizeof(room))) > 0)
    for (long at = 0; at < got;) {
      const struct entry *entry = (const void *)(room + at);
      if (entry->name[0] != '.' && each(folder, entry->name, more))
        return true;
      at += entry->bytes;
    }
  return false;
}

struct death {
  u32 pid;
  int signal;
  char pid_in_name[24]; /* "-123-" */
  char mine[24];
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
#define FIELD(file, header, field)                                                                 \
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
  (void)FIELD(file, header, oom_kills);
}

/* True when it was this process's trace. */
static bool write_death(int folder, const char *name, void *more) {
  const struct death *death = more;
  struct read_header header;
  const char *suffix = strrchr(name, '.');
  if (!suffix || strcmp(suffix, TSCOPE_FILE_SUFFIX) != 0 || !strstr(name, death->pid_in_name))
    return false;
  int file = tscope_open_own(folder, name, O_RDWR);
  if (file < 0)
    return false;
  char host[sizeof(header.host)] = "";
  gethostname(host, sizeof(host) - 1);
  bool is_it =
      READ(file, &header, magic) && READ(file, &header, pid) && READ(file, &header, host) &&
      READ(file, &header, closed_realtime_ns) && READ(file, &header, reaped_signal) &&
      READ(file, &header, memory_events) && READ(file, &header, pid_namespace) &&
      memcmp(header.magic, TSCOPE_MAGIC, sizeof(header.magic)) == 0 && header.pid == death->pid &&
      (!header.pid_namespace || header.pid_namespace == pid_namespace_of("self")) &&
      strncmp(header.host, host, sizeof(host) - 1) == 0 && !header.closed_realtime_ns &&
      !header.reaped_signal;
  if (is_it) {
    header.reaped_signal = (u32)death->signal;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    header.reaped_realtime_ns = (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
    (void)(FIELD(file, &header, reaped_signal) && FIELD(file, &header, reaped_realtime_ns));
    write_oom_kills(file, &header);
  }
  close(file);
  return is_it;
}

__attribute__((noinline)) static bool search_run(int folder, const char *name,
                                                 struct death *death) {
  int run = tscope_open_own(folder, name, O_RDONLY | O_DIRECTORY);
  bool found = run >= 0 && visit_names(run, write_death, death);
  if (run >= 0)
    close(run);
  return found;
}

/* A run without its own name is named after the process that started it. */
static bool search_started_run(int folder, const char *name, void *more) {
  struct death *death = more;
  return (strstr(name, death->mine) || strstr(name, death->pid_in_name)) &&
         search_run(folder, name, death);
}

static void search_named_run(int folder, const char *run, struct death *death) {
  char name[TSCOPE_RUN_NAME_BYTES];
  tscope_file_name_from(name, sizeof(name), run);
  search_run(folder, name, death);
}

void tscope_reaped(pid_t child, int signal) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  const char *directory = secure_getenv("TSCOPE_DIR"), *run = secure_getenv("TSCOPE_RUN");
  struct death death = {.pid = (u32)child, .signal = signal};
  snprintf(death.pid_in_name, sizeof(death.pid_in_name), "-%d-", (int)child);
  snprintf(death.mine, sizeof(death.mine), "-%d-", (int)getpid());
  char standard[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  tscope_directory_to_write(standard);
  int folder = tscope_open_own(AT_FDCWD, directory && *directory ? directory : standard,
                               O_RDONLY | O_DIRECTORY);
  if (folder >= 0) {
    if (run && *run)
      search_named_run(folder, run, &death);
    else
      visit_names(folder, search_started_run, &death);
    close(folder);
  }
}
