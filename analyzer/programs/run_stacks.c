/* SPDX-License-Identifier: MIT
 *
 * Each rank is asked first: its own helper reads its stacks, wherever it runs. A rank that does not
 * answer (stopped, dead, its helper does not get to run) is looked at from outside if it runs here;
 * else its record says what it did when it last stalled.
 */
#include "programs/run_stacks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/ask_ranks.h"
#include "attach/attached.h"
#include "attach/refused.h"
#include "base/now.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/tscope/files/process_state.h"
#include "import/tscope/load_traces.h"
#include "import/tscope/ranks/processes.h"
#include "inspect/thread_state.h"
#include "inspect/trace_process.h"

/* A rank that has not answered when no other has for so long does not get to it. */
static const i64 quiet_ns = 2000000000;
enum { LOOK_NS = 50000000, LOOKS_PER_CHECK = 10, FOLDERS_MOST = 64, THREADS_MOST = 4096 };

struct target {
  u32 rank;
  const char *path, *name; /* of its trace; the last part of it */
  struct tscope_file_header header;
  struct question *question;
  enum answer answer;
  bool hopeless; /* it cannot answer */
  char stopped;  /* the state of a process that cannot answer, as the kernel or a neighbour says */
  struct rank_stall stacks;
};

struct asking {
  struct arena *arena;
  const struct run_request *request;
  struct target *targets;
  u32 n;
  struct question *questions[FOLDERS_MOST];
  u32 n_questions;
  struct model *model; /* NULL until it is needed */
  char why_not[512];
};

static void add_target(struct asking *a, u32 rank, const char *path,
                       const struct tscope_file_header *header) {
  a->targets[a->n++] =
      (struct target){.rank = rank, .path = path, .name = last_part(path), .header = *header};
}

static int load_model(struct asking *a, char *why, size_t why_bytes) {
  return a->model ? 0 : model_load(a->request->path, NULL, &a->model, why, why_bytes);
}

ORDER_BY(by_rank, struct target, UP(rank))

/* The ranks as the traces' headers name them. `complete`: they name all of them. */
static int list_from_headers(struct asking *a, bool *complete, char *why, size_t why_bytes) {
  struct trace_runs runs = {0};
  struct processes processes = {0};
  int error = trace_runs_find(&a->request->path, 1, 0, a->arena, &runs, why, why_bytes);
  const struct trace_run *run = error ? NULL : trace_runs_choose(&runs, NULL, why, why_bytes);
  if (!run)
    return error ? error : -ENOENT;
  processes_list(&processes, run, a->arena);
  a->targets = arena_array(a->arena, processes.n, sizeof(*a->targets));
  *complete = !trace_ranks_are_unclear(&runs, run, &processes);
  FOR_EACH(processes.at, processes.n, process) {
    const struct tscope_file_header *header = &process->entry->header;
    *complete &= header->rank != TSCOPE_UNKNOWN_RANK;
    add_target(a, header->rank, process->entry->path, header);
  }
  processes_release(&processes);
  return 0;
}

/* The ranks as their communicators tell, also those in other runs' folders. */
static int list_from_model(struct asking *a, char *why, size_t why_bytes) {
  int error = load_model(a, why, why_bytes);
  a->n = 0;
  a->targets = error ? NULL : arena_array(a->arena, a->model->n_ranks, sizeof(*a->targets));
  if (error)
    return error;
  FOR_EACH(a->model->ranks, a->model->n_ranks, rank) {
    struct trace_file file;
    char ignored[256];
    if (trace_file_open(&file, rank->path, ignored, sizeof(ignored)) < 0)
      continue;
    add_target(a, rank->rank, rank->path, &file.header);
    trace_file_close(&file);
  }
  return 0;
}

/* One request for each folder; mostly there is only one. */
static struct question *question_for(struct asking *a, const char *folder) {
  FOR_EACH(a->questions, a->n_questions, item)
    if (strcmp((*item)->folder, folder) == 0)
      return *item;
  if (a->n_questions == FOLDERS_MOST)
    return NULL;
  struct question *question = arena_alloc(a->arena, sizeof(*question));
  a->questions[a->n_questions++] = question;
  question_ask(question, folder, a->why_not, sizeof(a->why_not));
  return question;
}

static void ask_all(struct asking *a) {
  FOR_EACH_CHANGED(a->targets, a->n, target) {
    const char *folder =
        process_is_over(&target->header) ? NULL : folder_of(a->arena, target->path);
    target->question = folder ? question_for(a, folder) : NULL;
    target->hopeless = !target->question || !target->question->number;
  }
}

/* Whether one of a process's threads has the name of our helper. */
static bool has_helper(pid_t pid) {
  static u32 tids[THREADS_MOST];
  u32 n = thread_list(pid, tids, THREADS_MOST);
  for (u32 i = 0; i < n && i < THREADS_MOST; i++) {
    struct thread_state state;
    if (thread_state_read(pid, tids[i], &state) && strcmp(state.name, "tscope") == 0)
      return true;
  }
  return false;
}

/* A process that has become another program has no helper: it is gone. */
static struct trace_process process_here(const struct target *target) {
  struct trace_process here = trace_process_find(&target->header);
  if (here.pid && !has_helper(here.pid))
    here = (struct trace_process){0};
  return here;
}

/* Whether a process of this host can answer: not if it is stopped or gone. */
static void check_here(struct target *target) {
  char state = process_here(target).state;
  if (thread_is_gone(state) || thread_is_stopped(state)) {
    target->stopped = state ? state : 'X';
    target->hopeless = true;
  }
}

/* What the processes that answered say of those that did not. */
static void hear_neighbours(struct asking *a, const struct target *from) {
  FOR_EACH(from->stacks.peers, from->stacks.n_peers, one)
    FOR_EACH_CHANGED(a->targets, a->n, target) {
      const struct stalled_peer *peer = one;
      if (target->header.pid != peer->pid || target->answer == ANSWER_WHOLE ||
          target->header.pid_namespace != from->header.pid_namespace ||
          !processes_share_host(&target->header, &from->header))
        continue;
      target->stopped = peer->state;
      target->hopeless |= thread_is_gone(peer->state) || thread_is_stopped(peer->state);
    }
}

/* True while some rank may still answer. */
static bool read_answers(struct asking *a, bool check, i64 *last_news) {
  bool more = false;
  FOR_EACH_CHANGED(a->targets, a->n, target) {
    if (target->answer == ANSWER_WHOLE || target->hopeless)
      continue;
    target->answer =
        question_read(target->question, target->name, false, a->arena, &target->stacks);
    if (target->answer == ANSWER_WHOLE) {
      *last_news = clock_ns(CLOCK_MONOTONIC);
      hear_neighbours(a, target);
    } else if (check) {
      check_here(target);
    }
    more |= target->answer != ANSWER_WHOLE && !target->hopeless;
  }
  return more;
}

static void wait_for_answers(struct asking *a) {
  i64 asked = clock_ns(CLOCK_MONOTONIC), last_news = asked;
  u32 processes = a->n;
  FOR_EACH(a->targets, a->n, target)
    processes = MAX(target->header.world_size, processes);
  i64 later_ns = (question_seconds(processes) - 1) * 1000000000ll;
  for (u32 looks = 0; read_answers(a, looks % LOOKS_PER_CHECK == 0, &last_news); looks++) {
    i64 now = clock_ns(CLOCK_MONOTONIC);
    if (now - asked > (i64)(a->request->wait_s * 1e9) + later_ns &&
        now - last_news > quiet_ns + later_ns)
      break;
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
  }
}

static void withdraw(struct asking *a) {
  FOR_EACH(a->questions, a->n_questions, question)
    question_withdraw(*question);
  FOR_EACH(a->targets, a->n, target)
    if (target->question)
      question_forget(target->question, target->name);
}

static enum silence silence_of(const struct target *target) {
  if (target->answer == ANSWER_WHOLE)
    return SILENCE_NONE;
  if (process_is_over(&target->header))
    return SILENCE_ENDED;
  if (!target->question || !target->question->number)
    return SILENCE_NOT_ASKED;
  return !target->stopped                     ? SILENCE_UNKNOWN
         : thread_is_stopped(target->stopped) ? SILENCE_STOPPED
         : thread_is_gone(target->stopped)    ? SILENCE_DIED
         : target->stopped == 'D'             ? SILENCE_DEVICE
                                              : SILENCE_UNKNOWN;
}

const char *silence_text(enum silence silence) {
  static const char *const texts[] = {
      [SILENCE_NONE] = "",
      [SILENCE_UNKNOWN] = "does not answer",
      [SILENCE_ENDED] = "has ended",
      [SILENCE_NOT_ASKED] = "was not asked",
      [SILENCE_STOPPED] = "is stopped",
      [SILENCE_DIED] = "has died",
      [SILENCE_DEVICE] = "does not answer: its first thread waits for a device",
  };
  return texts[silence];
}

static const struct rank_stall *recorded_stall(struct asking *a, const struct target *target) {
  char ignored[512];
  if (load_model(a, ignored, sizeof(ignored)) < 0)
    return NULL;
  const struct rank *rank =
      FIND(a->model->ranks, a->model->n_ranks, one, strcmp(one->path, target->path) == 0);
  return rank && rank->n_stalls ? &rank->stalls[rank->n_stalls - 1] : NULL;
}

/* Seconds since a moment of the model, by the clocks of day of this host and of the first rank's.
 */
static double age_of(const struct model *model, i64 moment) {
  double since_begin = ns_to_s(clock_ns(CLOCK_REALTIME) - model->began_realtime_ns);
  return model->began_realtime_ns ? since_begin - ns_to_s(moment) : NAN;
}

static bool use_record(struct asking *a, const struct target *target, struct process_stacks *one) {
  const struct rank_stall *stall = recorded_stall(a, target);
  if (!stall)
    return false;
  double age = age_of(a->model, stall->looked);
  const char *when = age >= 0 ? say(a, " of %s ago", duration_s(age).text) : "";
  one->source =
      say(a, "from its own record%s%s", when, stall->end == NS_UNKNOWN ? "" : ", but it went on");
  one->stacks = *stall;
  return true;
}

/* From outside; where the kernel refuses that, what the rank said itself has more. */
static bool look_from_outside(struct asking *a, const struct target *target,
                              struct process_stacks *one) {
  pid_t pid = process_here(target).pid;
  if (!pid)
    return false;
  if (is_reading_refused(pid)) {
    one->refused = describe_refusal(pid);
    if (target->answer != ANSWER_NONE || use_record(a, target, one))
      return target->answer == ANSWER_NONE;
    one->refused = NULL; /* what /proc has says why, too */
  }
  return attached_read_stacks(a->arena, pid, a->request->which, &one->stacks, &one->native) == 0;
}

/* False if nothing is known of the rank. */
static bool describe(struct asking *a, struct target *target, struct process_stacks *one) {
  bool answered = target->answer == ANSWER_WHOLE;
  *one = (struct process_stacks){.number = target->rank,
                                 .source = "now",
                                 .silence = silence_of(target),
                                 .host = arena_printable(a->arena, target->header.host)};
  if ((!answered || a->request->which != NATIVE_NONE) && look_from_outside(a, target, one))
    return true;
  if (!answered && target->question &&
      question_read(target->question, target->name, true, a->arena, &target->stacks))
    answered = true; /* at least in part */
  if (answered) {
    one->stacks = target->stacks;
    one->silence = SILENCE_NONE;
    one->native.why_none = "it said itself what it does, which has only Python frames";
    return true;
  }
  return use_record(a, target, one);
}

static void collect(struct asking *a, struct run_stacks *run) {
  run->at = arena_array(a->arena, a->n, sizeof(*run->at));
  run->silent = arena_array(a->arena, a->n, sizeof(*run->silent));
  FOR_EACH_CHANGED(a->targets, a->n, target) {
    if (describe(a, target, &run->at[run->n]))
      run->n++;
    else
      run->silent[run->n_silent++] =
          (struct silent_rank){target->rank, run->at[run->n].silence, run->at[run->n].host};
  }
  run->not_asked = *a->why_not ? arena_text(a->arena, a->why_not) : NULL;
}

int run_stacks_get(struct arena *arena, const struct run_request *request, struct run_stacks *run,
                   char *why, size_t why_bytes) {
  struct asking a = {.arena = arena, .request = request};
  bool complete = false;
  *run = (struct run_stacks){0};
  int error = list_from_headers(&a, &complete, why, why_bytes);
  if (!error && !complete)
    error = list_from_model(&a, why, why_bytes);
  if (!error) {
    SORT(a.targets, a.n, by_rank);
    ask_all(&a);
    wait_for_answers(&a);
    collect(&a, run);
    withdraw(&a);
  }
  run->model = a.model;
  return error;
}
