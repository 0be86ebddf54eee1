/* SPDX-License-Identifier: MIT */
#include "torch/torch_scope.h"

/* Of the C++ ABI's unwind.h, which plain C has no use for otherwise. */
#define UNWIND_ACTION_CLEANUP 2
#define UNWIND_CONTINUE 8

__thread struct torch_scope *torch_scopes __attribute__((tls_model("initial-exec")));

struct torch_scope *torch_scope_in_progress(struct torch_scope *scope, const char *frame) {
  return tscope_guard_is_active(tscope_self, &scope->guard, frame) ? scope : NULL;
}

/* The first pass over the stack only looks for a handler; in the second, frames really go. */
__attribute__((visibility("hidden"), used)) int
tscope_torch_unwind(int version, int actions, u64 exception_class, void *exception, void *context) {
  (void)version, (void)exception_class, (void)exception, (void)context;
  if (!(actions & UNWIND_ACTION_CLEANUP))
    return UNWIND_CONTINUE;
  struct torch_scope *scope = torch_scope_innermost();
  if (scope)
    torch_scope_pop(scope);
  else
    torch_scopes = NULL;
  return UNWIND_CONTINUE;
}
