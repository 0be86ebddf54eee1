/* SPDX-License-Identifier: MIT */
#include "facts/identity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts/launchers.def"
#include "facts/run_folders.h"
#include "facts/schedulers.def"
#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "inspect/this_host.h"
#include "settings/env.h"
#include "settings/process_environment.h"
#include "settings/setting_values.h"

static const struct launcher {
  const char *name, *rank, *local_rank, *world_size;
} launchers[] = {
#define X(name, rank, local_rank, world_size, sign) {name, rank, local_rank, world_size},
    TSCOPE_LAUNCHERS(X)
#undef X
};

static u32 number(const char *variable, u32 unknown) {
  const char *value = tscope_environment_get(variable);
  u64 parsed;
  return value && tscope_read_number(value, &parsed) && parsed < UINT32_MAX ? (u32)parsed : unknown;
}

struct parent {
  u32 pid;
  u64 start; /* clock ticks since boot; together with the pid it identifies a process for ever */
  char name[32];
};

/* The process with that folder in /proc, whose numbers may be those of another PID namespace than
 * this process's own. */
static bool read_process(const char *name, struct parent *process, u32 *parent) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%s/stat", name);
  if (small_file_read(path, text, sizeof(text)) <= 0)
    return false;
  const char *of = stat_field(text, 4), *start = stat_field(text, 22);
  if (!start)
    return false;
  *parent = (u32)leading_number(of, UINT32_MAX, NULL);
  *process = (struct parent){.pid = (u32)leading_number(text, UINT32_MAX, NULL),
                             .start = leading_number(start, UINT64_MAX, NULL)};
  stat_name(text, process->name, sizeof(process->name));
  return true;
}

static bool is_interactive_parent(const char *name) {
  static const char *const names[] = {"bash", "sh",      "dash",  "zsh",  "fish",   "ksh",
                                      "tcsh", "csh",     "sshd",  "tmux", "screen", "init",
                                      "su",   "systemd", "login", "sudo", "tini",   "make"};
  for (size_t i = 0; i < LENGTH_OF(names); i++)
    if (strcmp(name, names[i]) == 0 || (name[0] == '-' && strcmp(name + 1, names[i]) == 0))
      return true;
  return false;
}

/* The process that started the ranks of this host. This is the parent, or the parent's if a
 * launcher started each rank by a tscope-run of its own. If the parent is a shell and the run has
 * one process, then it is this process itself. */
static void find_starter(struct parent *process, u32 world_size) {
  struct parent self = {0};
  u32 parent = 0, steps = 0;
  char name[16];
  read_process("self", &self, &parent);
  self.pid = (u32)getpid();
  bool found;
  do {
    snprintf(name, sizeof(name), "%u", parent);
    found = read_process(name, process, &parent);
  } while (found && strcmp(process->name, "tscope-run") == 0 && ++steps);
  if (found && !steps && getppid())
    process->pid = (u32)getppid(); /* its own number, by which run_folders.c finds it */
  if (!found || (world_size < 2 && is_interactive_parent(process->name)))
    *process = self;
}

/* A name that was given before the job began, as tscope-run gives one to sbatch, is the same in
 * everything that the job starts: tasks of an array, attempts after a requeue, steps one after the
 * other. */
static void extend_run_name(char *run, size_t bytes) {
  const char *job = tscope_environment_get("SLURM_JOB_ID"),
             *task = tscope_environment_get("SLURM_ARRAY_TASK_ID");
  if (!job || !*tscope_env.run_job || strcmp(job, tscope_env.run_job) == 0)
    return;
  u32 requeued = number("SLURM_RESTART_COUNT", 0), step = number("SLURM_STEP_ID", 0);
  if (task)
    tscope_append(run, bytes, TSCOPE_RUN_TASK "%.12s", task);
  if (requeued)
    tscope_append(run, bytes, TSCOPE_RUN_REQUEUE "%u", requeued);
  if (step)
    tscope_append(run, bytes, TSCOPE_RUN_STEP "%u", step);
}

/* A name that distinguishes this run from all others in the directory, and that all its processes
 * know without communicating. What torchrun starts again is the same run: hosts count restarts
 * differently, and the report tells attempts apart. A rendezvous is not enough (ports are used
 * again), a job is not enough (a job script may train twice), and a parent process is the same only
 * on one host. */
static void name_run(struct tscope_identity *identity) {
  char run[sizeof(identity->run)] = "";
  if (*tscope_env.run) {
    tscope_file_name_from(run, sizeof(run), tscope_env.run);
    extend_run_name(run, sizeof(run));
    tscope_file_name_from(identity->run, sizeof(identity->run), run);
    return;
  }
  const struct tscope_scheduler *job = tscope_scheduler_of(tscope_environment_get);
  const char *elastic = tscope_environment_get("TORCHELASTIC_RUN_ID"),
             *port = tscope_environment_get("MASTER_PORT");
  if (job) {
    tscope_append(run, sizeof(run), TSCOPE_RUN_OF_JOB, job->name, tscope_environment_get(job->job));
    if (tscope_environment_get(job->step))
      tscope_append(run, sizeof(run), ".%.16s", tscope_environment_get(job->step));
    u32 requeued = number("SLURM_RESTART_COUNT", 0);
    if (requeued)
      tscope_append(run, sizeof(run), TSCOPE_RUN_REQUEUE "%u", requeued);
  }
  if (elastic) {
    tscope_append(run, sizeof(run), "%storchrun", job ? "-" : "");
    if (strcmp(elastic, "none") != 0)
      tscope_append(run, sizeof(run), "-%.40s", elastic);
  }
  u32 local_world_size = number("LOCAL_WORLD_SIZE", 0);
  bool one_host = elastic ? local_world_size == identity->world_size
                          : !job && !(port && identity->world_size > 1);
  if (one_host) {
    struct parent process;
    find_starter(&process, identity->world_size);
    tscope_append(run, sizeof(run), "%s%s-%u-%llu", *run ? "-" : "", elastic ? "p" : process.name,
                  process.pid, (unsigned long long)process.start);
  } else if (port) {
    const char *address = tscope_environment_get("MASTER_ADDR");
    tscope_append(run, sizeof(run), "%s%.40s-%.8s", *run ? "-" : "", address ? address : "master",
                  port);
  }
  tscope_file_name_from(identity->run, sizeof(identity->run), run);
}

/* The host's own name. If Slurm has another name for the node, that name is put before it: one
 * machine may act as several nodes, and people know nodes by Slurm's names. Never Slurm's name
 * alone, because the variable may have been inherited from another node. */
static void name_host(char *host, size_t bytes) {
  char own[64] = "";
  if (gethostname(own, sizeof(own) - 1) != 0)
    strcpy(own, "unknown");
  const char *node = tscope_environment_get("SLURMD_NODENAME");
  size_t first_label = strcspn(own, ".");
  bool same = node && strncmp(node, own, first_label) == 0 &&
              (node[first_label] == '\0' || node[first_label] == '.');
  if (node && !same)
    snprintf(host, bytes, "%.*s@%.*s", TSCOPE_HOST_PART, node, TSCOPE_HOST_PART, own);
  else
    snprintf(host, bytes, "%s", own);
}

void tscope_identify(struct tscope_identity *identity) {
  *identity =
      (struct tscope_identity){.rank = TSCOPE_UNKNOWN_RANK, .local_rank = TSCOPE_UNKNOWN_RANK};
  for (size_t i = 0; i < LENGTH_OF(launchers); i++) {
    const struct launcher *launcher = &launchers[i];
    if (!tscope_environment_get(launcher->rank))
      continue;
    identity->launcher =
        tscope_environment_get("TORCHELASTIC_RUN_ID") ? "torchrun" : launcher->name;
    identity->rank = number(launcher->rank, TSCOPE_UNKNOWN_RANK);
    identity->local_rank = number(launcher->local_rank, TSCOPE_UNKNOWN_RANK);
    identity->world_size = number(launcher->world_size, 0);
    break;
  }
  name_host(identity->host, sizeof(identity->host));
  tscope_file_name_from(identity->file_host, sizeof(identity->file_host), identity->host);
  name_run(identity);
}
