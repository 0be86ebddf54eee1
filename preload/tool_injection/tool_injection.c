/* SPDX-License-Identifier: MIT */
#include "tool_injection/tool_injection.h"

#include <string.h>
#include <sys/auxv.h>

#include "record/hook.h"
#include "settings/env.h"
#include "tool_injection/tool_injection.def"

#pragma GCC visibility push(hidden)
#define INJECTION(variable, answer, exported) const char *answer(const void *caller);
TSCOPE_TOOL_INJECTIONS(INJECTION)
#undef INJECTION
#pragma GCC visibility pop

/* Weak, so that a program may link the core with only some of the families. */
#define INJECTION(variable, answer, exported)                                                      \
  extern __typeof__(answer) answer __attribute__((weak));
TSCOPE_TOOL_INJECTIONS(INJECTION)
#undef INJECTION

static const struct injection {
  const char *variable;
  const char *(*answer)(const void *caller);
} injections[] = {
#define INJECTION(variable, answer, exported) {#variable, answer},
    TSCOPE_TOOL_INJECTIONS(INJECTION)
#undef INJECTION
};

char *tscope_tool_injection(const char *variable, const void *caller) {
  for (const struct injection *injection = injections;
       injection < injections + sizeof(injections) / sizeof(*injections); injection++) {
    if (strcmp(variable, injection->variable) != 0)
      continue;
    TSCOPE_KEEP_ERRNO;
    bool ours = injection->answer && !getauxval(AT_SECURE) && tscope_env_flag("TSCOPE", true);
    const char *answer = ours ? injection->answer(caller) : NULL;
    return (char *)answer;
  }
  return NULL;
}
