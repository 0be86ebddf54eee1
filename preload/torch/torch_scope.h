/* SPDX-License-Identifier: MIT
 *
 * The PyTorch calls in progress on a thread, innermost first. Scopes lie in the wrappers' stack
 * frames, one per wrapper. C++ exceptions may leave a wrapper (an out-of-memory error that the
 * training script catches and survives, say): TSCOPE_UNWINDS in the wrapper makes the unwinder
 * close the scope then, so that the span ends and what encloses it is known again.
 *
 * A longjmp() leaves a wrapper too, and nobody hears of it. And a greenlet that waits in the middle
 * of a call has its part of the stack copied away: others use that memory until it goes on. So a
 * scope that is not the caller's own is looked at only if its guard shows that its wrapper is still
 * in progress, there where it began.
 */
#pragma once

#include "callsites/call_sites.h"
#include "record/hook.h"

enum torch_scope_kind {
  SCOPE_PLAIN,  /* nothing that inner calls need */
  SCOPE_CALL,   /* a collective's method; says what the work queued inside it is about */
  SCOPE_BUCKET, /* a bucket's collective being put under way */
  SCOPE_WAITS,  /* waiting for buckets one by one */
  SCOPE_BACKWARD,
  SCOPE_OPERATOR, /* the backward of one operator */
  SCOPE_COMM,     /* making an NCCL communicator for a process group */
  SCOPE_RUN,      /* a collective running on gloo's worker */
};

struct torch_scope {
  struct tscope_guard guard;          /* the wrapper's */
  struct torch_scope *outer;          /* as it was at the start; see torch_scope_around() */
  const struct tscope_thread *thread; /* NULL when not recording */
  u64 *dur;                           /* of the span to close; NULL if none is open */
  u64 start;                          /* of the span to close */
  void *result;                       /* where a class object returned by value will be */
  const void *group;
  const void *tensors;
  const void *options;
  const void *reducer;                /* SCOPE_BUCKET, SCOPE_WAITS: DDP's, whose buckets they are */
  struct call_site_operator operator; /* SCOPE_OPERATOR: what the thread was at before */
  u32 comm, seq; /* SCOPE_BUCKET: last collective queued in it; transfers: their own */
  u8 kind;       /* enum torch_scope_kind */
  u8 tensors_shape;
  u8 options_shape;
};

extern __thread struct torch_scope *torch_scopes __attribute__((tls_model("initial-exec")));

static inline void torch_scope_push(struct torch_scope *scope, enum torch_scope_kind kind) {
  *scope = (struct torch_scope){.guard = scope->guard, .outer = torch_scopes, .kind = (u8)kind};
  torch_scopes = scope;
}

/* torch_phases.c: a backward pass has ended, in any way. */
void torch_listening_backward_end(const struct torch_scope *scope);

/* Closes the scope's span unless the process was forked inside it: the record is the parent's. */
static inline void torch_scope_close(struct torch_scope *scope) {
  if (scope->dur && tscope_is_live())
    tscope_span_close(scope->thread, scope->dur, scope->start);
  if (scope->kind == SCOPE_BACKWARD && scope->thread) {
    torch_listening_backward_end(scope);
    call_site_backward_end();
    scope->thread = NULL;
  }
  if (scope->kind == SCOPE_OPERATOR && scope->thread) {
    call_site_operator_end(scope->thread, &scope->operator);
    scope->thread = NULL;
  }
  scope->dur = NULL;
}

static inline void torch_scope_pop(struct torch_scope *scope) {
  torch_scope_close(scope);
  torch_scopes = scope->outer;
}

/* The scope itself if its call is in progress, seen from `frame`; else NULL. */
struct torch_scope *torch_scope_in_progress(struct torch_scope *scope, const char *frame);

static inline struct torch_scope *torch_scope_innermost(void) {
  return torch_scopes ? torch_scope_in_progress(torch_scopes, TSCOPE_FRAME()) : NULL;
}

/* The next one outwards. It must lie higher on the stack: a scope that was left by a jump may still
 * name one that was left before it, and this scope may now lie in that one's memory. */
static inline struct torch_scope *torch_scope_around(const struct torch_scope *scope) {
  return scope->outer > scope ? torch_scope_in_progress(scope->outer, (const char *)(scope + 1))
                              : NULL;
}

/* The innermost scope of a kind, NULL if there is none. */
static inline struct torch_scope *torch_scope_find(enum torch_scope_kind kind) {
  struct torch_scope *scope = torch_scope_innermost();
  while (scope && scope->kind != kind)
    scope = torch_scope_around(scope);
  return scope;
}

/* What the unwinder calls for a frame that has TSCOPE_UNWINDS: closes that frame's scope, and lets
 * the exception go on. It is our own, since __gcc_personality_v0 would make libtscope.so need
 * libgcc_s, and unlike that one it calls nothing of the unwinder's. */
int tscope_torch_unwind(int version, int actions, u64 exception_class, void *exception,
                        void *context);

/* In a wrapper that has pushed a scope. 0x1b: relative to here, four bytes. */
#define TSCOPE_UNWINDS __asm__ volatile(".cfi_personality 0x1b, tscope_torch_unwind")
