/* SPDX-License-Identifier: MIT */
#include "scripts/launch/closing_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/own_file.h"
#include "facts/run_folders.h"
#include "format/text_parts.h"
#include "format/tscope_format.h"
#include "inspect/disk_room.h"
#include "inspect/small_file.h"
#include "scripts/launch/installed_files.h"
#include "scripts/launch/message.h"
#include "settings/env.def"
#include "settings/process_environment.h"
#include "settings/setting_values.h"

/* Each costs a question to a file server while the job's caller waits. */
enum { MOST_HEADERS = 1000 };

enum { LEAST_TRACE = 128000 }; /* bytes: a file's header and its first chunk */

/* The folder of a run, with the time of its last new trace; INT64_MIN if there is none. */
struct run_folder {
  char name[NAME_MAX + 1];
  int64_t changed_ns;
};

struct run_search {
  const struct tscope_run_folders *folders;
  struct run_folder last;
};

static bool look_at_run(int directory, const char *name, void *with) {
  struct run_search *search = with;
  struct stat facts;
  if (tscope_run_folders_have(search->folders, name) &&
      fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode)) {
    int64_t changed = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec;
    if (changed > search->last.changed_ns) {
      search->last.changed_ns = changed;
      snprintf(search->last.name, sizeof(search->last.name), "%s", name);
    }
  }
  return false;
}

static struct run_folder last_changed(const char *directory,
                                      const struct tscope_run_folders *folders) {
  struct run_search search = {.folders = folders, .last.changed_ns = INT64_MIN};
  folder_names_of(directory, look_at_run, &search);
  return search.last;
}

int64_t runs_changed_ns(const char *directory, const struct tscope_run_folders *folders) {
  return last_changed(directory, folders).changed_ns;
}

/* Traces, and the ranks of the first of them. A rank that was started again has several. */
struct traces {
  uint32_t ranks[MOST_HEADERS]; /* TSCOPE_UNKNOWN_RANK */
  size_t files, read;
};

static bool look_at_trace(int folder, const char *name, void *with) {
  struct traces *traces = with;
  if (!tscope_ends_with(name, TSCOPE_FILE_SUFFIX) || traces->files++ >= MOST_HEADERS)
    return false;
  struct tscope_file_header header;
  int fd = tscope_open_own(folder, name, O_RDONLY);
  if (fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header))
    traces->ranks[traces->read++] = header.rank;
  if (fd >= 0)
    close(fd);
  return false;
}

static void find_traces(const char *directory, const char *run, struct traces *traces) {
  char path[2 * PATH_MAX];
  snprintf(path, sizeof(path), "%s/%s", directory, run);
  folder_names_of(path, look_at_trace, traces);
}

static int by_number(const void *left, const void *right) {
  const uint32_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

/* Those whose rank is not known count one each, where none is known: beside ranks they are other
 * programs of the job. */
static size_t count_ranks(struct traces *traces) {
  size_t n = 0;
  qsort(traces->ranks, traces->read, sizeof(*traces->ranks), by_number);
  for (size_t i = 0; i < traces->read && traces->ranks[i] != TSCOPE_UNKNOWN_RANK; i++)
    n += i == 0 || traces->ranks[i] != traces->ranks[i - 1];
  return n ? n : traces->read;
}

/* "2 ranks", "2 ranks recorded (4 processes)"; with very many traces the number of processes. */
static void describe(struct traces *traces, char *text, size_t bytes) {
  size_t ranks = count_ranks(traces);
  if (traces->files > MOST_HEADERS)
    snprintf(text, bytes, "%zu processes recorded", traces->files);
  else if (ranks < traces->files)
    snprintf(text, bytes, "%zu rank%s recorded (%zu processes)", ranks, ranks == 1 ? "" : "s",
             traces->files);
  else
    snprintf(text, bytes, "%zu rank%s recorded", ranks, ranks == 1 ? "" : "s");
}

/* Whether a shell finds exactly this file under `name`. */
static bool is_first_on_path(const char *name, const char *file) {
  const char *path = tscope_environment_now("PATH");
  char *folders = strdup(path ? path : ""), *rest = folders;
  bool same = false, seen = false;
  for (const char *folder; !seen && (folder = strsep(&rest, ":"));) {
    char candidate[2 * PATH_MAX], real[PATH_MAX];
    snprintf(candidate, sizeof(candidate), "%s/%s", *folder ? folder : ".", name);
    seen = access(candidate, X_OK) == 0;
    same = seen && realpath(candidate, real) && strcmp(real, file) == 0;
  }
  free(folders);
  return same;
}

/* `word` quoted so that a shell takes it as one word. The caller frees it. */
static char *shell_word(const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./:=@%+,";
  size_t length = strlen(word);
  if (length && strspn(word, plain) == length)
    return strdup(word);
  char *quoted = malloc(4 * length + 3), *to = quoted;
  if (!quoted)
    return NULL;
  *to++ = '\'';
  for (; *word; word++)
    to = *word == '\'' ? stpcpy(to, "'\\''") : (*to = *word, to + 1);
  strcpy(to, "'");
  return quoted;
}

/* The command that shows the report, quoted for a shell. The caller frees it. */
static char *report_command(const char *directory, const char *run) {
  char program[PATH_MAX];
  if (!installed_program("tscope-report", program) || is_first_on_path("tscope-report", program))
    strcpy(program, "tscope-report");
  char *words[] = {shell_word(program), shell_word(directory), run ? shell_word(run) : strdup("")};
  char *command = NULL;
  if (!words[0] || !words[1] || !words[2] ||
      asprintf(&command, "%s %s%s%s", words[0], words[1], run ? " --run " : "", words[2]) < 0)
    command = NULL;
  for (size_t i = 0; i < LENGTH_OF(words); i++)
    free(words[i]);
  return command;
}

/* Some file systems, such as /proc, say that one may write, and refuse each new folder. */
static bool folders_can_be_made(const char *folder) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/.tscope-%d", folder, (int)getpid());
  return mkdir(path, 0700) == 0 && rmdir(path) == 0;
}

/* What TSCOPE_DISK_FREE says, in bytes. */
static u64 least_free(void) {
  u64 bytes = 0;
  const char *value = tscope_environment_now("TSCOPE_DISK_FREE");
  if (!(value && tscope_read_size(value, &bytes)))
    tscope_read_size(TSCOPE_DISK_FREE_STANDARD, &bytes);
  return bytes;
}

/* Why no trace can be written there, in `why`; false if nothing speaks against it. The shim decides
 * by itself, in each process: this is for whoever starts the job. */
static bool cannot_write(const char *directory, char *why, size_t bytes) {
  char path[PATH_MAX];
  struct stat facts;
  struct statvfs disk;
  snprintf(path, sizeof(path), "%s", directory);
  bool is_there = lstat(path, &facts) == 0;
  if (is_there) {
    if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) {
      snprintf(why, bytes, "%s %s", path,
               S_ISLNK(facts.st_mode)   ? "is a symbolic link, and what it points to is not used"
               : S_ISDIR(facts.st_mode) ? "belongs to another user"
                                        : "is not a directory");
      return true;
    }
  } else { /* it will be made: then the folder above it must be there, or be made too */
    for (char *slash; access(path, F_OK) != 0 && (slash = strrchr(path, '/'));)
      slash[slash == path] = '\0';
  }
  if (access(path, W_OK | X_OK) != 0 || (!is_there && !folders_can_be_made(path))) {
    snprintf(why, bytes, "%s cannot be written to (%s)", path, strerror(errno));
    return true;
  }
  if (statvfs(path, &disk) != 0 || disk_has_room(&disk, least_free(), LEAST_TRACE))
    return false;
  snprintf(why, bytes, "the disk of %s is full: %.1f MB are free", path,
           (double)disk.f_bavail * (double)disk.f_frsize / 1e6);
  return true;
}

static bool is_switched_off(void) {
  const char *value = tscope_environment_now("TSCOPE");
  bool on = true;
  return value && tscope_read_flag(value, &on) && !on;
}

bool is_off(const char *directory, char *why, size_t bytes) {
  if (!is_switched_off())
    return cannot_write(directory, why, bytes);
  snprintf(why, bytes, "the environment has TSCOPE=%s", tscope_environment_now("TSCOPE"));
  return true;
}

/* Of a run that has no trace yet, the report is asked for by the name that was given. */
void print_closing_line(const char *command, const char *directory,
                        const struct tscope_run_folders *folders, int64_t changed_ns,
                        const char *off) {
  const char *run = tscope_environment_now("TSCOPE_RUN");
  struct run_folder last = last_changed(directory, folders);
  struct traces traces = {.files = 0};
  char recorded[96], later[PATH_MAX + 64] = "";
  if (last.changed_ns > changed_ns)
    find_traces(directory, last.name, &traces);
  describe(&traces, recorded, sizeof(recorded));
  char *report = report_command(directory, traces.files ? last.name : run);
  const char *see = report ? report : "tscope-report";
  if (traces.files)
    print_message("%s; see the report with: %s", recorded, see);
  else if (*off || is_off(directory, later, sizeof(later)))
    print_message("tscope was off: %s%s", *off ? off : later,
                  is_switched_off() ? "" : "; give --dir another directory");
  else
    print_message(
        "no trace here yet: %s made no NCCL, CUDA or gloo call on this host, or ran what does "
        "without LD_PRELOAD (as sudo and containers do: put tscope run inside), or has only queued "
        "the job; then, when it has run: %s",
        command, see);
  free(report);
}
