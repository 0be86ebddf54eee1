/* SPDX-License-Identifier: MIT */
#include "analyses/stalls/stall_words.h"

#include <math.h>
#include <string.h>

#include "analyses/analysis.h"
#include "analyses/lines/line_sums.h"
#include "base/arena.h"
#include "base/texts.h"
#include "inspect/thread_state.h"
#include "kernels/communication.h"

const struct stalled_thread *stall_main_thread(const struct rank_stall *stall) {
  return LARGEST(stall->threads, stall->n_threads, one, true, one->main ? 2 : one->python);
}

static bool is_asleep(const struct stalled_thread *thread) {
  return !thread->moved && thread->state && strchr("SDTt", thread->state);
}

/* A thread that sleeps and holds the GIL: no other thread can run Python meanwhile. */
static const struct stalled_thread *gil_holder(const struct rank_stall *stall) {
  return FIND(stall->threads, stall->n_threads, one, one->holds_gil && is_asleep(one));
}

/* An enum tscope_activity: what older traces do not say, the call's name does. */
static u8 waits_for(const struct stalled_thread *thread) {
  return thread->waits_for ? thread->waits_for : thread_waits_by_name(thread->call, thread->file);
}

const char *stall_state_words(char state) {
  switch (state) {
  case 'R':
    return "running";
  case 'S':
    return "asleep";
  case 'D':
    return "waiting for a device, uninterruptible (D)";
  case 'T':
    return "stopped, as by SIGSTOP or Ctrl-Z";
  case 't':
    return "stopped by a debugger";
  case 'Z':
  case 'X':
    return "ended";
  default:
    return NULL;
  }
}

/* In a call of torch.distributed that other ranks must join, where no record says in which. */
static bool is_in_communication(const struct stalled_thread *thread) {
  const struct call_frame *const *frames = thread->frames;
  return ANY_NUMBER(0, thread->n_frames, i,
                    frames[i]->file && frames[i]->function &&
                        strstr(frames[i]->file, "/torch/distributed/distributed_c10d.py") &&
                        op_named(frames[i]->function));
}

static enum stall_doing doing_in_call(u8 activity) {
  static const enum stall_doing doing[] = {
      [TSCOPE_ACTIVITY_SLEEP] = STALL_SLEEPS,
      [TSCOPE_ACTIVITY_LOCK] = STALL_WAITS_FOR_LOCK,
      [TSCOPE_ACTIVITY_DISK] = STALL_INPUT_OUTPUT,
      [TSCOPE_ACTIVITY_NETWORK] = STALL_WAITS_FOR_DATA,
      [TSCOPE_ACTIVITY_PIPE] = STALL_WAITS_FOR_DATA,
      [TSCOPE_ACTIVITY_EVENTS] = STALL_WAITS_FOR_DATA,
      [TSCOPE_ACTIVITY_PROCESS] = STALL_WAITS_FOR_PROCESS,
  };
  return activity < LENGTH_OF(doing) ? doing[activity] : STALL_UNKNOWN;
}

static enum stall_doing stall_doing_of(const struct rank_stall *stall,
                                       const struct stalled_thread *thread,
                                       const char *in_collective) {
  const struct stalled_thread *holder = gil_holder(stall);
  if (!thread)
    return STALL_UNKNOWN;
  if (thread_is_stopped(thread->state))
    return STALL_STOPPED;
  if (thread->state == 'D')
    return STALL_INPUT_OUTPUT;
  if (holder)
    return holder == thread ? STALL_KEEPS_GIL : STALL_WAITS_FOR_GIL;
  if (waits_for(thread) == TSCOPE_ACTIVITY_DISK && is_asleep(thread))
    return STALL_INPUT_OUTPUT;
  if (in_collective || (is_asleep(thread) && is_in_communication(thread)))
    return STALL_IN_COLLECTIVE;
  if (thread->state == 'R' || thread->moved)
    return STALL_RUNS;
  return doing_in_call(waits_for(thread));
}

/* "read of pipe:[12], asleep in anon_pipe_read". NULL if nothing is known. */
static char *describe_system_call(struct arena *arena, const struct stalled_thread *thread) {
  const char *state = stall_state_words(thread->state);
  if (!state && !thread->call)
    return NULL;
  return arena_printf(arena, "%s%s%s%s%s%s%s", text_or_empty(thread->call),
                      thread->file ? " of " : "", text_or_empty(thread->file),
                      thread->call && state ? ", " : "", text_or_empty(state),
                      state && thread->wait ? " in " : "", text_or_empty(thread->wait));
}

/* Functions that only pass on a call. */
static bool passes_on(const char *function) {
  static const char *const passing[] = {"wrapper", "decorate_context", "_fn", "inner", "wrapped"};
  return MATCHES_ANY(last_name(function), passing, same_text);
}

/* "train.py:9 (main)": where the program calls the library in whose training loop a frame is; NULL
 * if it is in none. */
static const char *caller_of_loop(struct arena *arena, const char *folder,
                                  const struct stalled_thread *thread, u32 frame) {
  if (!thread->frames[frame]->runs_training)
    return NULL;
  while (++frame < thread->n_frames) {
    const struct call_frame *own = thread->frames[frame];
    if (!own->runs_training && call_frame_is_user_code(own))
      return place_with_function(arena, call_frame_place(arena, own, folder), own->function);
  }
  return NULL;
}

static void set_place(struct arena *arena, const char *folder, const struct stalled_thread *thread,
                      struct stalled_rank *out) {
  const struct call_frame *own = NULL, *called = NULL;
  for (u32 i = 0; i < thread->n_frames && !own; i++) {
    const struct call_frame *frame = thread->frames[i];
    if (frame->library)
      continue;
    if (call_frame_is_user_code(frame)) {
      own = frame;
      out->loop = caller_of_loop(arena, folder, thread, i);
    } else if (frame->function && (!called || !passes_on(frame->function))) {
      called = frame;
    }
  }
  if (!own) { /* none is the user's */
    own = thread->n_frames ? thread->frames[0] : NULL;
    called = NULL;
  }
  if (!own)
    return;
  out->place = call_frame_place(arena, own, folder);
  out->file = own->file;
  out->function = own->function;
  out->line = own->line ? own->line : (double)NAN;
  out->call = called ? called->function : NULL;
}

static char *list_frames(struct arena *arena, const struct stalled_thread *thread) {
  const u32 most = 12;
  char *text = arena_text(arena, "");
  for (u32 i = 0; i < thread->n_frames && i < most; i++)
    text = arena_list(arena, text, "\n", "%s", call_frame_in_stack(arena, thread->frames[i]));
  return thread->n_frames ? text : NULL;
}

/* Who holds the GIL, and where. */
static char *describe_gil_holder(struct arena *arena, const struct rank_stall *stall,
                                 const struct stalled_thread *main) {
  const struct stalled_thread *holder = gil_holder(stall);
  struct stalled_rank at = {0};
  if (!holder || holder == main)
    return arena_text(arena, "");
  set_place(arena, stall->folder, holder, &at);
  const char *system = describe_system_call(arena, holder);
  return arena_printf(arena, "; thread %u keeps the GIL%s%s%s%s%s%s", holder->tid,
                      at.place ? ", at " : "", text_or_empty(at.place), at.function ? " in " : "",
                      text_or_empty(at.function), system ? ": " : "", text_or_empty(system));
}

/* "NCCL reports of dp: remote process exited or ...", for the first errors. NULL if there is no
 * error. */
static char *describe_nccl(struct arena *arena, const struct rank_stall *stall) {
  enum { MOST = 2 };
  char *text = NULL;
  u32 errors = 0;
  FOR_EACH(stall->comms, stall->n_comms, comm) {
    if (!comm->result || ++errors > MOST)
      continue;
    text = arena_list(arena, text, "; ", "NCCL reports of %s: %s", comm->name,
                      nccl_error_text(comm->result));
  }
  return errors > MOST && text
             ? arena_printf(arena, "%s; and errors of %u more", text, errors - MOST)
             : text;
}

char *stall_place(struct arena *arena, const struct stalled_rank *rank) {
  if (!rank->place)
    return NULL;
  char *place = place_with_function(arena, rank->place, rank->function);
  return rank->loop ? arena_printf(arena, "%s, called from %s", place, rank->loop) : place;
}

bool stall_same_place(const struct stalled_rank *a, const struct stalled_rank *b) {
  return a->place && same_text(a->place, b->place) && same_text(a->call, b->call);
}

bool stall_does_the_same(const struct stalled_rank *a, const struct stalled_rank *b) {
  return stall_same_place(a, b) && a->what == b->what && same_text(a->nccl, b->nccl);
}

/* Whether data that a thread waits for may be another rank's: in a call of the program's own line,
 * or in torch.distributed. What comes through a pipe, and what other libraries of Python wait for
 * (`call`), is a child's, a loader's or a server's. */
static bool may_be_of_ranks(const struct stalled_thread *thread, const char *call) {
  const struct call_frame *const *frames = thread->frames;
  if (waits_for(thread) == TSCOPE_ACTIVITY_PIPE)
    return false;
  for (u32 i = 0; i < thread->n_frames && call && !call_frame_is_user_code(frames[i]); i++)
    if (frames[i]->file && strstr(frames[i]->file, "/torch/distributed/"))
      return true;
  return !call;
}

void stall_describe(struct arena *arena, const struct rank_stall *stall, const char *in_collective,
                    struct stalled_rank *out) {
  const struct stalled_thread *main = stall_main_thread(stall);
  out->what = stall_doing_of(stall, main, in_collective);
  out->line = (double)NAN;
  out->nccl = describe_nccl(arena, stall);
  out->words = out->nccl;
  out->begins = "";
  if (!main)
    return;
  set_place(arena, stall->folder, main, out);
  out->awaits_others = out->what == STALL_IN_COLLECTIVE ||
                       (out->what == STALL_WAITS_FOR_DATA && may_be_of_ranks(main, out->call));
  out->system = describe_system_call(arena, main);
  out->frames = list_frames(arena, main);
  char *holder = describe_gil_holder(arena, stall, main);
  char *where = arena_text(arena, "");
  if (out->place)
    where = arena_printf(arena, "%s%s%s%s", out->call ? "in " : "at ", text_or_empty(out->call),
                         out->call ? ", from " : "", stall_place(arena, out));
  bool known = in_collective || *where || out->system || *holder;
  out->begins = in_collective ? "It " : known ? "It is " : "";
  out->words =
      arena_printf(arena, "%s%s%s%s%s%s%s%s%s", in_collective ? "waits in " : "",
                   text_or_empty(in_collective), in_collective && *where ? ", " : "", where,
                   (in_collective || *where) && out->system ? ": " : "", text_or_empty(out->system),
                   holder, out->nccl && known ? "; " : "", text_or_empty(out->nccl));
}

u32 stall_stacks(const struct rank_stall *stall, u32 rank, struct tree_stack *stacks) {
  const struct stalled_thread *main = stall_main_thread(stall);
  u32 n = 0;
  FOR_EACH(stall->threads, stall->n_threads, thread)
    if (thread->n_frames)
      stacks[n++] = (struct tree_stack){.rank = rank,
                                        .folder = stall->folder,
                                        .thread = thread == main ? NULL : "other threads",
                                        .frames = thread->frames,
                                        .n = thread->n_frames};
  return n;
}

char *stack_last_sampled(const struct analysis *a, u32 rank) {
  const struct call_frame *last = a->line_sums ? a->line_sums[rank].last : NULL;
  return last ? place_with_function(a->arena,
                                    call_frame_place(a->arena, last, model_folder(a->model)),
                                    last->function)
              : NULL;
}
