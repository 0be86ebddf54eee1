/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>

#include "analyses/lines/lines.h"
#include "analyses/run_end/exception_causes.def"
#include "analyses/run_end/run_end.h"
#include "analyses/stalls/stall_words.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "format/exception_links.def"
#include "inspect/thread_state.h"
#include "kernels/communication.h"
#include "model/stalls.h"

/* An exception that Python printed longer than this before the end was caught, and another line has
 * nothing to do with it. The interpreter's end alone may take many seconds. */
#define EXCEPTION_NS (30 * 1000 * 1000 * 1000ll)

/* An exception that ended a program, without those before it in its chain, and what follows: the
 * words about these, "" if there are none. What directly caused it, else itself, decides about the
 * cause. */
struct exception_chain {
  int own_bytes;
  const char *rest, *deciding;
};

static struct exception_chain chain_of(const char *exception) {
#define X(id, line, words) words,
  static const char *const links[] = {TSCOPE_EXCEPTION_LINKS(X)};
#undef X
  for (u32 i = 0; i < LENGTH_OF(links); i++) {
    const char *rest = strstr(exception, links[i]);
    if (rest)
      return (struct exception_chain){(int)(rest - exception), rest,
                                      i == TSCOPE_LINK_CAUSED_BY ? rest + strlen(links[i])
                                                                 : exception};
  }
  size_t n = strlen(exception);
  return (struct exception_chain){(int)n, exception + n, exception};
}

/* What an exception says by a part of its text. */
struct known_text {
  const char *text;
  enum end_cause cause;
  bool lost; /* its peer is gone, and not only late */
};

/* NULL: it is about something else. */
static const struct known_text *find_known_text(const char *exception) {
  static const struct known_text known[] = {
#define X(text, source) {text, END_LOST_PEER, true},
      TSCOPE_LOST_PEER(X)
#undef X
#define X(text, source) {text, END_LOST_PEER, false},
          TSCOPE_GAVE_UP(X)
#undef X
#define X(text, source) {text, END_OUT_OF_MEMORY, false},
              TSCOPE_OUT_OF_MEMORY(X)
#undef X
  };
  struct exception_chain chain = chain_of(exception);
  const char *end = chain.deciding == exception ? chain.rest : chain.rest + strlen(chain.rest);
  FOR_EACH(known, LENGTH_OF(known), one) {
    const char *at = strstr(chain.deciding, one->text);
    if (at && at < end)
      return one;
  }
  return NULL;
}

static enum end_cause cause_of_exception(const char *exception) {
  const struct known_text *known = find_known_text(exception);
  return known ? known->cause : END_EXCEPTION;
}

i64 told_loss_at(const struct rank_end *end) {
  const struct known_text *known = end->exception ? find_known_text(end->exception) : NULL;
  return known && known->lost ? end->exception_at : NS_UNKNOWN;
}

static const char *signal_name(u32 signal) {
  static const struct {
    u32 number;
    const char *name;
  } names[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
               {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
               {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
               {SIGSEGV, "SIGSEGV"}, {SIGPIPE, "SIGPIPE"}, {SIGTERM, "SIGTERM"},
               {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"},
               {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  FOR_EACH(names, LENGTH_OF(names), one)
    if (one->number == signal)
      return one->name;
  return "a signal";
}

static bool is_termination_signal(u32 signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

/* "CUDA error 700 in a kernel launch", where a call failed shortly before the end. */
static char *describe_failed_call(const struct analysis *a, const struct rank_end *end) {
  return say(a, "%s error %d from %s", end->failed_whose == TSCOPE_FAILED_NCCL ? "NCCL" : "CUDA",
             end->failed_result, end->failed);
}

/* "ValueError: no label, at train.py:9 (load); caused by KeyError: 'x', at data.py:3 (get)" */
static char *words_of_exception(struct analysis *a, const struct rank_end *end) {
  struct exception_chain chain = chain_of(end->exception);
  const char *place = exception_place(a, end);
  return say(a, "%.*s%s%s%s", chain.own_bytes, end->exception, place ? ", at " : "",
             text_or_empty(place), chain.rest);
}

bool was_interrupted(const struct rank_end *end) {
  return text_starts_with(end->exception, "KeyboardInterrupt");
}

static char *words_of_interrupt(struct analysis *a, const struct rank_end *end) {
  const char *place = exception_place(a, end);
  return say(a, "interrupted (SIGINT)%s%s", place ? ", at " : "", text_or_empty(place));
}

/* A thread ended with an exception, or the program with threads that go on: soon the rank called
 * nothing more until it was stopped. */
static bool stood_still(const struct rank_end *end, const struct ending *ending) {
  return ending->what == ENDING_STOPPED && end->exception && !was_interrupted(end) &&
         cause_of_exception(end->exception) != END_LOST_PEER &&
         !(ending->last && ending->last->call_start - end->exception_at > EXCEPTION_NS);
}

/* Its interpreter was still ending when the launcher lost patience. */
static bool wrote_it_last(const struct rank_end *end, const struct ending *ending) {
  return !ending->last || ending->last->call_start <= end->exception_at;
}

static void set_cause_by_signal(struct analysis *a, const struct rank_end *end,
                                struct ending *ending) {
  const char *name = signal_name(end->signal);
  ending->what = is_termination_signal(end->signal) ? ENDING_STOPPED : ENDING_OWN;
  ending->cause = END_SIGNAL;
  if (end->signal == SIGKILL && end->out_of_memory_kills) {
    ending->cause = END_OUT_OF_MEMORY;
    ending->why = say(a,
                      "killed by the kernel because its cgroup's memory was used up (SIGKILL; %s "
                      "since it began)",
                      plural(end->out_of_memory_kills, "such kill").text);
  } else if (was_interrupted(end) && (end->signal == SIGINT || wrote_it_last(end, ending))) {
    ending->what = ENDING_STOPPED;
    ending->why = words_of_interrupt(a, end);
    ending->from = end->exception_at; /* on a busy machine it may need seconds more to end */
  } else if (end->signal == SIGKILL && told_loss_at(end) != NS_UNKNOWN &&
             wrote_it_last(end, ending)) {
    ending->what = ENDING_LOST_PEER;
    ending->cause = END_LOST_PEER;
    ending->why = words_of_exception(a, end);
    ending->from = end->exception_at;
  } else {
    ending->why = say(a, "ended by %s (signal %u)", name, end->signal);
  }
  if (!stood_still(end, ending))
    return;
  ending->cause = cause_of_exception(end->exception);
  ending->why = say(a, "%s, %s before it was %s", words_of_exception(a, end),
                    duration_s(ns_to_s(ending->at - end->exception_at)).text, ending->why);
}

char *exception_place(struct analysis *a, const struct rank_end *end) {
  const char *function = end->exception_function;
  char *place = end->exception_file
                    ? line_place(a, end->exception_file, end->exception_line, function)
                    : NULL;
  return place ? place_with_function(a->arena, place, function) : NULL;
}

static void set_cause_by_exit(struct analysis *a, const struct rank_end *end,
                              struct ending *ending) {
  bool exception = end->exception && ending->at - end->exception_at < EXCEPTION_NS;
  const char *how = end->kind == TSCOPE_END_AT_ONCE ? "_exit" : "exit";
  if (end->status == 0) {
    ending->what = ENDING_IN_ORDER;
    ending->cause = END_EXIT;
    ending->why = say(a, "ended normally (%s status 0)", how);
    return;
  }
  ending->what = ENDING_OWN;
  ending->cause = END_EXIT_STATUS;
  ending->why = say(a, "%s status %d", how, end->status);
  bool last_words = end->last_line && ending->at - end->last_line_at < EXCEPTION_NS;
  if (!exception && last_words)
    ending->why = say(a, "%s, after it wrote to standard error: %s", ending->why, end->last_line);
  if (!exception)
    return;
  ending->from = end->exception_at;
  if (was_interrupted(end)) {
    ending->what = ENDING_STOPPED;
    ending->cause = END_SIGNAL;
    ending->why = words_of_interrupt(a, end);
    return;
  }
  ending->cause = cause_of_exception(end->exception);
  ending->why = say(a, "%s (%s status %d)", words_of_exception(a, end), how, end->status);
  if (ending->cause == END_LOST_PEER)
    ending->what = ENDING_LOST_PEER;
}

/* A call that failed shortly before the end is why, if nothing says more. */
static void set_cause_by_failed_call(const struct analysis *a, const struct rank_end *end,
                                     struct ending *ending) {
  enum { NCCL_REMOTE_ERROR = 6 };
  const i64 shortly_ns = 30 * 1000 * 1000 * 1000ll;
  bool more_specific = ending->cause != END_CAUSE_UNKNOWN && ending->cause != END_EXCEPTION &&
                       ending->cause != END_EXIT_STATUS && ending->cause != END_SIGNAL;
  if (!end->failed || ending->what != ENDING_OWN || more_specific ||
      ending->at - end->failed_at > shortly_ns)
    return;
  bool nccl = end->failed_whose == TSCOPE_FAILED_NCCL;
  char *words = describe_failed_call(a, end);
  if (nccl && end->failed_result == NCCL_REMOTE_ERROR) {
    ending->what = ENDING_LOST_PEER;
    ending->cause = END_LOST_PEER;
  } else {
    ending->cause = nccl ? END_NCCL_ERROR : END_CUDA_ERROR;
  }
  ending->from = MIN(end->failed_at, ending->from);
  if (ending->why)
    ending->why = say(a, "%s; %s", words, ending->why);
}

static void find_last_call(const struct analysis *a, struct ending *ending) {
  const struct model *model = a->model;
  FOR_EACH(model->arrivals, model->n_arrivals, arrival) {
    if (arrival->rank != ending->rank)
      continue;
    bool pending = arrival->call_end == NS_UNKNOWN;
    if (!op_is_message(arrival->op) &&
        (!ending->last_of_all || arrival->call_start > ending->last_of_all->call_start))
      ending->last_of_all = arrival;
    if (!ending->last || (pending && !ending->pending) ||
        (pending == ending->pending && arrival->call_start > ending->last->call_start)) {
      ending->last = arrival;
      ending->pending = pending;
    }
  }
}

/* It was stopped, and ended when it was let go: what it ended with follows from that, but for a
 * reason of its own that it told. */
static void set_cause_by_pause(const struct analysis *a, const struct rank_end *end,
                               const struct rank_stall *pause, struct ending *ending) {
  bool own = ending->what == ENDING_OWN && (end->signal != SIGKILL || end->out_of_memory_kills);
  if (!pause || own || ending->what == ENDING_IN_ORDER)
    return;
  bool more = ending->what != ENDING_SILENT;
  ending->what = ENDING_SILENT;
  ending->cause = END_STOPPED;
  ending->from = pause->begin;
  ending->at = pause->begin + LONGER_ALIVE_NS;
  ending->why = say(a, "its process did not run for its last %s: it was stopped or frozen%s%s",
                    duration_s(ns_to_s(pause->end - pause->begin)).text, more ? "; then " : "",
                    more ? ending->why : "");
}

/* An exception was the last that it wrote, and then it called nothing more: its own end had begun,
 * or it stood still, when its trace stops. */
static void add_last_exception(struct analysis *a, const struct rank_end *end,
                               struct ending *ending) {
  if (!end->exception || end->exception_at == NS_UNKNOWN || was_interrupted(end) || !ending->last ||
      ending->pending || ending->last->call_start > end->exception_at)
    return;
  i64 stops = MAX(ending->from, end->exception_at), before = stops - end->exception_at;
  if (before > EXCEPTION_NS)
    return;
  enum end_cause cause = cause_of_exception(end->exception);
  ending->from = stops;
  ending->at = stops + LONGER_ALIVE_NS;
  ending->said_lost = cause == END_LOST_PEER;
  ending->cause = ending->said_lost ? END_SILENT : cause;
  ending->why = say(a, "its trace stops %s after it wrote %s", duration_s(ns_to_s(before)).text,
                    words_of_exception(a, end));
}

/* No record tells how it ended; the kernel of this machine may know that it has not. */
static void set_cause_of_silence(struct analysis *a, const struct rank *rank,
                                 struct ending *ending) {
  bool stopped = thread_is_stopped(rank->running);
  ending->what = ENDING_SILENT;
  ending->cause = stopped ? END_STOPPED : END_SILENT;
  ending->why = stopped
                    ? say(a, "its process is still there, but %s", stall_state_words(rank->running))
                : rank->running ? "its process still runs"
                                : "its trace stops, and no record says why: it was killed, its "
                                  "host was lost, or it is still running elsewhere";
  if (!rank->running)
    add_last_exception(a, &rank->ending, ending);
}

void ending_of_rank(struct analysis *a, u32 r, struct ending *ending) {
  const struct rank *rank = &a->model->ranks[r];
  const struct rank_end *end = &rank->ending;
  i64 alive = rank_alive_until(rank);
  *ending = (struct ending){
      .rank = r, .global = rank->rank, .from = alive, .at = alive + LONGER_ALIVE_NS};
  find_last_call(a, ending);
  if (end->signal) {
    if (end->reaped != NS_UNKNOWN)
      ending->at = MAX(end->reaped, alive);
    set_cause_by_signal(a, end, ending);
  } else if (end->kind != TSCOPE_END_UNSEEN) {
    ending->from = ending->at = end->end;
    set_cause_by_exit(a, end, ending);
  } else {
    set_cause_of_silence(a, rank, ending);
  }
  set_cause_by_failed_call(a, end, ending);
  set_cause_by_pause(a, end, rank_last_pause(rank, alive), ending);
}
