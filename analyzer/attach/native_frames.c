/* SPDX-License-Identifier: MIT */
#include "attach/native_frames.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/each.h"
#include "inspect/memory_read.h"
#include "symbols/dwfl_places.h"

struct native_process {
  Dwfl *dwfl;
  pid_t pid;
  struct arena *arena;
  const struct snapshots *snapshots;
  const struct thread_snapshot *thread; /* that is unwound now */
  struct native_frame *frames;
  u32 n, most;
};

const char *native_frames_unavailable(void) {
  return NULL;
}

static pid_t opened; /* the process whose files elfutils requests */

/* Whether the file is still the one that the process has mapped at `base`: a file that was
 * installed later would give wrong names. */
static bool same_file(pid_t pid, int fd, u64 base) {
  u8 mapped[1024], now[1024];
  return tscope_read_memory(pid, base, mapped, sizeof(mapped)) == 0 &&
         pread(fd, now, sizeof(now), 0) == (ssize_t)sizeof(now) &&
         memcmp(mapped, now, sizeof(now)) == 0;
}

/* A file as the process sees it, which may be in a container. What is not a file (the kernel's page
 * of code, a deleted file) is read by elfutils from the process's memory. */
static int find_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                    char **file_name, Elf **elf) {
  char path[4200];
  if (*name == '/') {
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)opened, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && same_file(opened, fd, base)) {
      *file_name = memory_text(name);
      return fd;
    }
    if (fd >= 0)
      close(fd);
    return -1;
  }
  return dwfl_linux_proc_find_elf(module, user, name, base, file_name, elf);
}

static char *debug_path = NULL; /* elfutils' own: beside the file, and /usr/lib/debug */
static const Dwfl_Callbacks files = {
    .find_elf = find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .debuginfo_path = &debug_path,
};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_context) {
  (void)dwfl, (void)context, (void)thread_context;
  return 0; /* elfutils requests them one by one */
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_context) {
  (void)dwfl;
  struct native_process *process = context;
  *thread_context = process;
  return process->thread && (pid_t)process->thread->tid == tid;
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context) {
  (void)dwfl;
  const struct native_process *process = context;
  const struct thread_snapshot *thread = process->thread;
  if (address < thread->stack_at || address - thread->stack_at + sizeof(u64) > thread->stack_bytes)
    return false;
  u64 value;
  memcpy(&value, thread->stack + (address - thread->stack_at), sizeof(value));
  *word = value;
  return true;
}

/* In the order of DWARF's numbers for the machine. */
static bool set_registers(Dwfl_Thread *state, void *context) {
  const struct native_process *process = context;
  const struct user_regs_struct *r = &process->thread->registers;
#if defined(__x86_64__)
  const Dwarf_Word words[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                              r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
  return dwfl_thread_state_registers(state, 0, LENGTH_OF(words), words);
#else
  Dwarf_Word words[32];
  for (int i = 0; i < 31; i++)
    words[i] = r->regs[i];
  words[31] = r->sp;
  dwfl_thread_state_register_pc(state, r->pc);
  return dwfl_thread_state_registers(state, 0, 32, words);
#endif
}

static const Dwfl_Thread_Callbacks threads = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_stack,
    .set_initial_registers = set_registers,
};

static void name_frame(struct native_process *process, u64 pc, struct native_frame *frame) {
  Dwfl_Module *module = dwfl_addrmodule(process->dwfl, pc);
  Dwarf_Addr inside = pc;
  struct native_place place = {0};
  *frame = (struct native_frame){.offset = pc};
  if (!module)
    return;
  const char *library = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  frame->library = arena_text(process->arena, library);
  frame->build_id = dwfl_build_id(process->arena, module);
  dwfl_module_relocate_address(module, &inside);
  frame->offset = inside;
  dwfl_name_place(process->arena, module, pc, &place);
  COPY_EACH(frame, &place, function, symbol, file, line);
}

static int add_frame(Dwfl_Frame *state, void *context) {
  struct native_process *process = context;
  Dwarf_Addr pc;
  bool activation;
  if (process->n == process->most || !dwfl_frame_pc(state, &pc, &activation))
    return DWARF_CB_ABORT;
  if (pc < 4096) /* outside of all frames: the first function of a thread returns to 0 */
    return DWARF_CB_OK;
  name_frame(process, activation ? pc : pc - 1, &process->frames[process->n++]);
  return DWARF_CB_OK;
}

struct native_process *native_open(struct arena *arena, pid_t pid,
                                   const struct snapshots *snapshots) {
  struct native_process *process = arena_alloc(arena, sizeof(*process));
  unsetenv("DEBUGINFOD_URLS"); /* elfutils would download what is not on this host */
  *process = (struct native_process){.pid = pid, .arena = arena, .snapshots = snapshots};
  opened = pid;
  process->dwfl = dwfl_begin(&files);
  if (!process->dwfl)
    return NULL;
  dwfl_report_begin(process->dwfl);
  int error = dwfl_linux_proc_report(process->dwfl, pid);
  dwfl_report_end(process->dwfl, NULL, NULL);
  if (error || !dwfl_attach_state(process->dwfl, NULL, pid, &threads, process)) {
    native_close(process);
    return NULL;
  }
  return process;
}

u32 native_unwind(struct native_process *process, const struct thread_snapshot *thread,
                  struct native_frame *frames, u32 most, bool *whole) {
  process->thread = thread;
  process->frames = frames;
  process->n = 0;
  process->most = most;
  *whole = dwfl_getthread_frames(process->dwfl, (pid_t)thread->tid, add_frame, process) == 0;
  process->thread = NULL;
  return process->n;
}

void native_close(struct native_process *process) {
  if (process && process->dwfl)
    dwfl_end(process->dwfl);
}
