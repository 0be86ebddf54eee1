/* SPDX-License-Identifier: MIT */
#include "facts/run_folders.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts/schedulers.def"
#include "format/text_parts.h"
#include "settings/process_environment.h"

const struct tscope_scheduler *tscope_scheduler_of(const char *(*get)(const char *name)) {
  static const struct tscope_scheduler schedulers[] = {
#define X(name, job, step) {name, job, step},
      TSCOPE_SCHEDULERS(X)
#undef X
  };
  for (size_t i = 0; i < LENGTH_OF(schedulers); i++)
    if (get(schedulers[i].job))
      return &schedulers[i];
  return NULL;
}

void tscope_run_folders_find(struct tscope_run_folders *folders, pid_t child) {
  const pid_t starters[] = {child, getpid(), getppid()};
  char run[TSCOPE_RUN_NAME_BYTES] = "";
  const char *given = tscope_environment_now("TSCOPE_RUN");
  const struct tscope_scheduler *job = given ? NULL : tscope_scheduler_of(tscope_environment_now);
  *folders = (struct tscope_run_folders){.given = given};
  if (job)
    snprintf(run, sizeof(run), TSCOPE_RUN_OF_JOB, job->name, tscope_environment_now(job->job));
  if (given || *run)
    tscope_file_name_from(folders->begin, sizeof(folders->begin), given ? given : run);
  for (size_t i = 0; i < LENGTH_OF(starters); i++)
    snprintf(folders->starters[i], sizeof(folders->starters[i]), "-%d-", (int)starters[i]);
}

/* Whether the name has a process that has started the run: "-PID-START" at its end. A host's number
 * and a port look alike, but a machine has been up for longer than a port has digits. */
static bool has_a_process(const char *name) {
  static const char digits[] = "0123456789";
  const char *start = strrchr(name, '-'), *pid = start;
  while (pid > name && strchr(digits, pid[-1]))
    pid--;
  size_t length = start ? strspn(start + 1, digits) : 0;
  return pid > name && pid < start && pid[-1] == '-' && length > 5 && !start[1 + length];
}

/* What may follow a name that was given, or that a job's id made. */
static bool is_an_end(const char *text, bool given) {
  return !*text || (given ? tscope_begins_with(text, TSCOPE_RUN_TASK) ||
                                tscope_begins_with(text, TSCOPE_RUN_REQUEUE) ||
                                tscope_begins_with(text, TSCOPE_RUN_STEP)
                          : *text == '.' || *text == '-');
}

bool tscope_run_folders_have(const struct tscope_run_folders *folders, const char *name) {
  if (*folders->begin)
    return tscope_begins_with(name, folders->begin) &&
           is_an_end(name + strlen(folders->begin), folders->given);
  bool has = !has_a_process(name);
  for (size_t i = 0; !has && i < LENGTH_OF(folders->starters); i++)
    has = strstr(name, folders->starters[i]);
  return has;
}
