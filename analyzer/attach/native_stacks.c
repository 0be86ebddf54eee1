/* SPDX-License-Identifier: MIT */
#include "attach/native_stacks.h"

#include <stdio.h>
#include <string.h>

#include "attach/refused.h"
#include "base/checked_memory.h"
#include "base/texts.h"
#include "inspect/small_file.h"

enum { NATIVE_MOST = 2048 };

struct mixing {
  struct arena *arena;
  pid_t pid;
  const struct python *python;
  enum native_which which;
  const struct thread_snapshot *snapshot;
  const struct native_frame *native;
  u32 n_native;
  struct stalled_thread *thread;
  u32 step; /* of the snapshot: the next one to put */
};

/* "python3.11" and "libpython3.11.so.1.0". */
static bool is_in_python(const struct native_frame *frame) {
  const char *name = last_part(text_or_empty(frame->library));
  return text_starts_with(name, "python3") || text_starts_with(name, "libpython3");
}

/* The interpreter's loop; a compiler may have split it ("_PyEval_EvalFrameDefault.cold"). */
static bool runs_python(const struct native_frame *frame) {
  return text_starts_with(frame->symbol, "_PyEval_EvalFrameDefault");
}

static bool starts_thread(const struct native_frame *frame) {
  static const char *const names[] = {
      "start_thread",      "clone",  "__clone", "clone3", "__clone3", "__libc_start_call_main",
      "__libc_start_main", "_start", "main"};
  return MATCHES_ANY(frame->symbol, names, text_starts_with);
}

static void put_native(struct mixing *m, const struct native_frame *native) {
  struct call_frame *frame = arena_alloc(m->arena, sizeof(*frame));
  const char *library = native->library ? native->library : "no file";
  *frame = (struct call_frame){.file = native->file ? native->file : library,
                               .function = native->function,
                               .line = native->line,
                               .library = library};
  if (!frame->function)
    frame->function =
        arena_printf(m->arena, "+0x%llx%s%s", (unsigned long long)native->offset,
                     native->build_id ? " of build " : "", text_or_empty(native->build_id));
  m->thread->frames[m->thread->n_frames++] = frame;
}

/* The Python frames that one call of the interpreter runs; with `all`, all that are left. */
static void put_call(struct mixing *m, bool all) {
  for (bool ends = false; m->step < m->snapshot->n_steps && (all || !ends); m->step++) {
    const struct python_step *step = &m->snapshot->steps[m->step];
    ends = step->ends_call;
    struct call_frame *frame =
        step->has_frame ? python_call_frame(m->arena, m->python, m->pid, &step->frame) : NULL;
    if (frame)
      m->thread->frames[m->thread->n_frames++] = frame;
  }
}

static u32 count_calls(const struct mixing *m) {
  return NUMBER_OF(m->native, m->n_native, one, runs_python(one));
}

static u32 count_steps(const struct mixing *m) {
  return NUMBER_OF(m->snapshot->steps, m->snapshot->n_steps, one, one->ends_call);
}

/* Whether a native frame outside of, or between, Python frames says anything. */
static bool is_known(const struct mixing *m, const struct native_frame *frame) {
  return m->which == NATIVE_ALL || (!is_in_python(frame) && !starts_thread(frame));
}

/* From the innermost outwards: both lists are complete there, so each call of the interpreter takes
 * the next Python frames. If they do not match, only frames that are certainly inside of all Python
 * frames are added: for an interpreter whose loop has no frame of that name (3.14 and 3.15 may be
 * built with tail calls), those in other libraries. */
static void put_mixed(struct mixing *m, bool fits) {
  bool inside = false; /* of no Python frame any more */
  bool any_calls = count_calls(m) > 0;
  FOR_EACH(m->native, m->n_native, frame) {
    bool call = runs_python(frame) && m->step < m->snapshot->n_steps;
    if (!fits && (call || (!any_calls && is_in_python(frame))))
      break;
    inside |= call;
    if (call)
      put_call(m, false);
    else if (!inside || is_known(m, frame))
      put_native(m, frame);
  }
  put_call(m, true);
}

static void merge_thread(struct mixing *m, bool native_whole, struct native_outcome *outcome) {
  u32 calls = count_calls(m), steps = count_steps(m);
  bool python_whole = m->snapshot->python_whole;
  bool fits = native_whole && python_whole ? calls == steps
              : native_whole               ? calls >= steps
              : python_whole               ? calls <= steps
                                           : true;
  struct stalled_thread *thread = m->thread;
  thread->frames =
      arena_array(m->arena, size_sum(m->n_native, m->snapshot->n_steps), sizeof(*thread->frames));
  thread->n_frames = 0;
  outcome->unmatched += !fits;
  outcome->cut += !native_whole;
  thread->cut = !native_whole || (m->snapshot->n_steps && !python_whole);
  put_mixed(m, fits);
}

static void count(const struct snapshots *snapshots, u32 wanted, struct native_outcome *outcome) {
  FOR_EACH(snapshots->threads, snapshots->n, snapshot) {
    outcome->taken += snapshot->got == SNAPSHOT_TAKEN;
    outcome->stuck += snapshot->got == SNAPSHOT_STUCK;
    outcome->refused += snapshot->got == SNAPSHOT_REFUSED;
    outcome->gone += snapshot->got == SNAPSHOT_ENDED;
    outcome->all_ns += snapshot->stopped_ns;
    outcome->longest_ns = MAX(snapshot->stopped_ns, outcome->longest_ns);
  }
  outcome->left = wanted - outcome->taken - outcome->stuck - outcome->refused - outcome->gone;
}

static void merge_threads(struct mixing *m, const struct snapshots *snapshots,
                          struct native_process *process, struct rank_stall *look,
                          struct native_outcome *outcome) {
  static struct native_frame native[NATIVE_MOST];
  m->native = native;
  for (u32 i = 0; i < snapshots->n; i++) {
    const struct thread_snapshot *snapshot = &snapshots->threads[i];
    bool whole;
    if (snapshot->got != SNAPSHOT_TAKEN)
      continue;
    m->snapshot = snapshot;
    m->thread = &look->threads[i];
    m->step = 0;
    m->n_native = native_unwind(process, snapshot, native, NATIVE_MOST, &whole);
    if (m->n_native)
      merge_thread(m, whole, outcome);
  }
}

/* The process that traces `pid` already; 0. */
static u32 tracer_of(pid_t pid) {
  char path[32], text[1024];
  snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
  small_file_read(path, text, sizeof(text));
  const char *tracer = line_value(text, "TracerPid");
  return tracer ? (u32)leading_number(tracer, UINT32_MAX, NULL) : 0;
}

static const char *explain_none(struct arena *arena, pid_t pid, int error,
                                const struct native_outcome *outcome) {
  u32 tracer = tracer_of(pid);
  if (outcome->taken)
    return NULL;
  if (outcome->refused && tracer)
    return arena_printf(arena, "process %u traces it already (a debugger?)", tracer);
  if (outcome->refused)
    return describe_refusal(pid);
  if (outcome->stuck)
    return "its threads wait in the kernel, uninterruptible, and did not stop";
  if (outcome->left)
    return arena_printf(arena, "its stacks could not be copied%s%s", error ? ": " : "",
                        error ? strerror(-error) : "");
  return "it has ended";
}

void native_stacks_add(struct arena *arena, pid_t pid, const struct python *python,
                       const u64 *states, enum native_which which, struct rank_stall *look,
                       struct native_outcome *outcome) {
  struct snapshots snapshots = {0};
  struct thread_snapshot *wanted = arena_array(arena, look->n_threads, sizeof(*wanted));
  *outcome = (struct native_outcome){.why_none = native_frames_unavailable()};
  if (outcome->why_none)
    return;
  for (u32 i = 0; i < look->n_threads; i++)
    wanted[i] = (struct thread_snapshot){.tid = look->threads[i].tid, .python_state = states[i]};
  int error = snapshots_take(pid, python, wanted, look->n_threads, &snapshots);
  count(&snapshots, look->n_threads, outcome);
  outcome->why_none = explain_none(arena, pid, error, outcome);
  if (outcome->why_none)
    goto out;
  struct native_process *process = native_open(arena, pid, &snapshots);
  struct mixing m = {.arena = arena, .pid = pid, .python = python, .which = which};
  if (process)
    merge_threads(&m, &snapshots, process, look, outcome);
  else
    outcome->why_none = "the files that it mapped cannot be read";
  native_close(process);
out:
  snapshots_release(&snapshots);
}
