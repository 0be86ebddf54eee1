/* SPDX-License-Identifier: MIT */
#include "attach/python_calls.h"

#include "inspect/python_code.h"

/* struct _PyInterpreterFrame of 3.11 has is_entry right before owner. */
static bool read_marks(const struct python *python, const struct python_process *process, u64 at,
                       u8 *owner, bool *ends_call) {
  const struct python_layout *layout = &python->layout;
  u8 entry = 1;
  *owner = 0;
  if (layout->frame_owner != PYTHON_NONE &&
      !python_read_process(process, at + layout->frame_owner, owner, 1))
    return false;
  if (layout->minor == 11 && !python_read_process(process, at + layout->frame_owner - 1, &entry, 1))
    return false;
  *ends_call = layout->minor <= 11 ? entry != 0 : *owner >= PYTHON_OWNED_BY_C;
  return true;
}

/* From 3.14 on there is one frame of the interpreter's own outside of all, which no call runs. */
static u32 count_without_outermost(const struct python *python, const struct python_step *steps,
                                   u32 n) {
  bool empty = n > 0 && !steps[n - 1].has_frame && (n == 1 || steps[n - 2].ends_call);
  return python->layout.minor >= 14 && empty ? n - 1 : n;
}

u32 python_calls_read(const struct python *python, pid_t pid, u64 thread_state,
                      struct python_step *steps, u32 most, bool *whole) {
  const struct python_process process = {.pid = pid};
  u64 at = 0;
  u32 n = 0;
  *whole = false;
  if (!python_first_frame(python, python_read_process, &process, thread_state, &at))
    return 0;
  while (at && n < most) {
    struct python_step *step = &steps[n];
    u8 owner;
    *step = (struct python_step){0};
    if (!read_marks(python, &process, at, &owner, &step->ends_call))
      return n;
    enum python_walk seen =
        python_read_frame(python, python_read_process, &process, at, &step->frame);
    if (seen == PYTHON_UNREADABLE ||
        !python_read_process(&process, at + python->layout.frame_previous, &at, 8))
      return n;
    step->has_frame = seen == PYTHON_FRAME;
    n += step->has_frame || step->ends_call;
  }
  *whole = !at;
  return count_without_outermost(python, steps, n);
}

struct call_frame *python_call_frame(struct arena *arena, const struct python *python, pid_t pid,
                                     const struct python_frame *frame) {
  static struct python_location place;
  const struct python_process process = {.pid = pid};
  struct call_frame *call = arena_alloc(arena, sizeof(*call));
  if (python_location_of(python, python_read_process, &process, frame, &place))
    *call = (struct call_frame){.file = arena_text(arena, place.file),
                                .function = arena_text(arena, place.function),
                                .line = place.line,
                                .first_line = place.first_line};
  return call;
}
