/* SPDX-License-Identifier: MIT
 *
 * Facts about the process for the trace: where and how it was started, from what code, on what
 * machine.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts/cpu_quota.h"
#include "facts/identity.h"
#include "facts/redact.h"
#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "inspect/this_host.h"
#include "resolve/search.h"
#include "settings/env.h"
#include "settings/process_environment.h"

/* All of this runs on the helper's stack. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

/* Environment variables that show how the training was set up, and those on which the exact bits of
 * the results depend. */
static const char *const recorded_prefixes[] = {
    "NCCL_",          "CUDA_",       "TORCH",    "CUDNN_",         "FLASH_ATTENTION_",
    "PL_GLOBAL_SEED", "PYTORCH_",    "GLOO_",    "OMP_",           "MKL_",
    "KMP_",           "SLURM_",      "OMPI_",    "PMI_",           "PMIX_",
    "RANK",           "LOCAL_",      "GROUP_",   "ROLE_",          "WORLD",
    "MASTER_",        "NVTE_",       "CUBLAS",   "TRITON",         "XLA_",
    "UCX_",           "FI_",         "NVIDIA",   "TSCOPE",         "HSA_",
    "DEEPSPEED",      "ACCELERATE_", "MEGATRON", "PYTHONHASHSEED", "CONDA_DEFAULT_ENV",
    "KUBERNETES_NODE"};

static bool is_recorded(const char *entry) {
  for (size_t i = 0; i < LENGTH_OF(recorded_prefixes); i++)
    if (tscope_begins_with(entry, recorded_prefixes[i]))
      return true;
  return false;
}

static void write_environment(struct tscope_thread *thread) {
  for (const char *entry = NULL; (entry = tscope_environment_next(entry));) {
    const char *equals = strchr(entry, '=');
    char name[128], value[4096];
    if (!equals || (size_t)(equals - entry) >= sizeof(name) || !is_recorded(entry))
      continue;
    snprintf(name, sizeof(name), "%.*s", (int)(equals - entry), entry);
    tscope_redact_variable(value, sizeof(value), name, equals + 1);
    tscope_info(thread, TSCOPE_INFO_ENVIRONMENT, value, name);
  }
}

/* Reads the beginning of a small file, without its last line end; false if it cannot be read. */
static bool read_text(const char *path, char *text, size_t bytes) {
  ssize_t got = small_file_read(path, text, bytes);
  if (got < 0)
    return false;
  while (got > 0 && text[got - 1] == '\n')
    text[--got] = '\0';
  return true;
}

static void write_command(struct tscope_thread *thread) {
  char arguments[8192], text[2048];
  ssize_t got =
      tscope_env.command ? small_file_read("/proc/self/cmdline", arguments, sizeof(arguments)) : 0;
  if (got <= 0)
    return;
  arguments[got] = '\0'; /* the last one may be cut */
  tscope_redact_command(text, sizeof(text), arguments, (size_t)got);
  tscope_info(thread, TSCOPE_INFO_COMMAND, text, NULL);
}

static bool is_commit(const char *text) {
  size_t digits = strspn(text, "0123456789abcdef");
  return (digits == 40 || digits == 64) && (text[digits] == '\0' || text[digits] == '\n');
}

struct packed {
  const char *reference;
  char *commit;
  size_t bytes;
};

/* "COMMIT REFERENCE", a line of packed-refs. */
static bool is_reference(const char *line, void *with) {
  const struct packed *wanted = with;
  const char *blank = strchr(line, ' ');
  if (!blank || strcmp(blank + 1, wanted->reference) != 0)
    return false;
  snprintf(wanted->commit, wanted->bytes, "%.*s", (int)MIN(blank - line, 64), line);
  return is_commit(wanted->commit);
}

/* The commit to which `reference` ("refs/heads/...") points, from its own file or from
 * packed-refs. */
static bool find_reference(const char *git, const char *reference, char *commit, size_t bytes) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s/%s", git, reference) < sizeof(path) &&
      read_text(path, commit, bytes) && is_commit(commit))
    return true;
  /* Without fgets(), which allocates: for a thread that never allocates, the C library reserves 64
   * MiB of addresses then, and the job may be inside malloc() while it waits for this thread. */
  char room[1024];
  struct packed wanted = {reference, commit, bytes};
  return (size_t)snprintf(path, sizeof(path), "%s/packed-refs", git) < sizeof(path) &&
         file_lines_visit(path, room, sizeof(room), is_reference, &wanted);
}

/* Sets `git` to the folder that holds HEAD: <folder>/.git, or the folder to which a file of that
 * name points.
 */
static bool find_git_folder(const char *folder, char *git, size_t bytes) {
  char text[PATH_MAX];
  if ((size_t)snprintf(git, bytes, "%s/.git", folder) >= bytes)
    return false;
  if (access(git, F_OK) != 0)
    return false;
  if (!read_text(git, text, sizeof(text))) /* a folder cannot be read */
    return true;
  if (!tscope_begins_with(text, "gitdir: "))
    return false;
  const char *target = text + strlen("gitdir: ");
  return (size_t)snprintf(git, bytes, "%s%s%s", target[0] == '/' ? "" : folder,
                          target[0] == '/' ? "" : "/", target) < bytes;
}

/* The commit checked out in `git`. An additional work tree has its own HEAD; the references are in
 * the folder that its file `commondir` names. */
static bool read_head(const char *git, char *commit, size_t bytes) {
  char path[PATH_MAX], head[512], common[PATH_MAX], where[512];
  if ((size_t)snprintf(path, sizeof(path), "%s/HEAD", git) >= sizeof(path) ||
      !read_text(path, head, sizeof(head)))
    return false;
  if (!tscope_begins_with(head, "ref: ")) {
    snprintf(commit, bytes, "%.64s", head);
    return is_commit(commit);
  }
  if (find_reference(git, head + 5, commit, bytes))
    return true;
  if ((size_t)snprintf(path, sizeof(path), "%s/commondir", git) >= sizeof(path) ||
      !read_text(path, where, sizeof(where)))
    return false;
  bool fits = (size_t)snprintf(common, sizeof(common), "%s%s%s", where[0] == '/' ? "" : git,
                               where[0] == '/' ? "" : "/", where) < sizeof(common);
  return fits && find_reference(common, head + 5, commit, bytes);
}

bool tscope_git_commit(const char *folder, char *commit, size_t bytes) {
  char here[PATH_MAX], git[PATH_MAX];
  snprintf(here, sizeof(here), "%s", folder);
  for (;;) {
    if (find_git_folder(here, git, sizeof(git)))
      return read_head(git, commit, bytes);
    char *slash = strrchr(here, '/');
    if (!slash || slash == here)
      return false;
    *slash = '\0';
  }
}

static void write_directory(struct tscope_thread *thread) {
  char folder[PATH_MAX], commit[PATH_MAX];
  if (!getcwd(folder, sizeof(folder)))
    return;
  tscope_info(thread, TSCOPE_INFO_DIRECTORY, folder, NULL);
  if (tscope_git_commit(folder, commit, sizeof(commit)))
    tscope_info(thread, TSCOPE_INFO_GIT_COMMIT, commit, NULL);
}

/* A line's value; false if there is none. */
static bool value_of(const char *text, const char *name, char *value, size_t bytes) {
  const char *at = line_value(text, name);
  if (at)
    snprintf(value, bytes, "%.*s", (int)strcspn(at, "\n"), at);
  return at != NULL;
}

/* For an Arm processor the kernel gives only numbers. */
static void write_cpu(struct tscope_thread *thread) {
  char text[4096], model[128], maker[16], part[16];
  if (!read_text("/proc/cpuinfo", text, sizeof(text)))
    return;
  if (!value_of(text, "model name", model, sizeof(model))) {
    if (!value_of(text, "CPU implementer", maker, sizeof(maker)) ||
        !value_of(text, "CPU part", part, sizeof(part)))
      return;
    snprintf(model, sizeof(model), "implementer %s, part %s", maker, part);
  }
  tscope_info(thread, TSCOPE_INFO_CPU, model, NULL);
}

/* The cores that the main thread may run on, as "0-3,8". */
static void write_cores(struct tscope_thread *thread) {
  char text[4096], list[512];
  if (read_text("/proc/self/status", text, sizeof(text)) &&
      value_of(text, "Cpus_allowed_list", list, sizeof(list)))
    tscope_info(thread, TSCOPE_INFO_CORES, list, NULL);
}

/* "1500 of /slice/job": thousandths of a core, and the control group with that limit. */
static void write_quota(struct tscope_thread *thread) {
  struct tscope_cpu_quota quota;
  char text[sizeof(quota.group) + 16];
  if (!tscope_cpu_quota("", &quota))
    return;
  snprintf(text, sizeof(text), "%u of %s", quota.thousandths, quota.group);
  tscope_info(thread, TSCOPE_INFO_CPU_QUOTA, text, NULL);
}

static void write_clock(struct tscope_thread *thread) {
  struct own_clock clock = own_clock_read();
  if (*clock.text)
    tscope_info(thread, TSCOPE_INFO_CLOCK, clock.text, NULL);
}

static void write_number(struct tscope_thread *thread, enum tscope_info key, u32 value) {
  char text[16];
  snprintf(text, sizeof(text), "%u", value);
  tscope_info(thread, key, text, NULL);
}

void tscope_facts_write(const struct tscope_identity *identity) {
  struct tscope_thread *thread = NULL; /* strings and facts are definitions, not a thread's */
  if (identity->rank != TSCOPE_UNKNOWN_RANK)
    write_number(thread, TSCOPE_INFO_RANK, identity->rank);
  if (identity->local_rank != TSCOPE_UNKNOWN_RANK)
    write_number(thread, TSCOPE_INFO_LOCAL_RANK, identity->local_rank);
  if (identity->world_size)
    write_number(thread, TSCOPE_INFO_WORLD_SIZE, identity->world_size);
  tscope_info(thread, TSCOPE_INFO_LAUNCHER, identity->launcher, NULL);
  tscope_info(thread, TSCOPE_INFO_HOST, identity->host, NULL);
  write_number(thread, TSCOPE_INFO_PID, (u32)getpid());
  tscope_info(thread, TSCOPE_INFO_RUN, identity->run, NULL);
  tscope_info(thread, TSCOPE_INFO_TSCOPE, TSCOPE_VERSION_TEXT, NULL);
  write_command(thread);
  write_directory(thread);
  write_cpu(thread);
  write_cores(thread);
  write_quota(thread);
  write_clock(thread);
  write_environment(thread);
}

bool tscope_facts_write_python(void) {
  const char *(*get_version)(void) =
      (const char *(*)(void))tscope_first_definition("Py_GetVersion");
  if (!get_version)
    return false;
  const char *whole = get_version(); /* "3.11.7 (main, ...) [GCC ...]" */
  char text[32];
  snprintf(text, sizeof(text), "%.*s", (int)strcspn(whole, " "), whole);
  tscope_info(NULL, TSCOPE_INFO_PYTHON, text, NULL);
  return true;
}
