/* SPDX-License-Identifier: MIT
 *
 * Where elfutils was not there when the program was built.
 */
#include <stddef.h>

#include "attach/native_frames.h"

const char *native_frames_unavailable(void) {
  return "this tscope-stacks was built without native frames (elfutils' libdw was missing)";
}

struct native_process *native_open(struct arena *arena, pid_t pid,
                                   const struct snapshots *snapshots) {
  (void)arena, (void)pid, (void)snapshots;
  return NULL;
}

u32 native_unwind(struct native_process *process, const struct thread_snapshot *thread,
                  struct native_frame *frames, u32 most, bool *whole) {
  (void)process, (void)thread, (void)frames, (void)most;
  *whole = false;
  return 0;
}

void native_close(struct native_process *process) {
  (void)process;
}
