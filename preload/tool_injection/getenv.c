/* SPDX-License-Identifier: MIT
 *
 * getenv(), which answers for the variables of tool_injection.def and otherwise is the C library's
 * own: a variable that is set is never hidden or changed, and the environment itself is never
 * written.
 *
 * The C library's function is reached as secure_getenv(), the same function but for programs with
 * more rights than their caller: looking it up by name instead could allocate memory, and memory
 * allocators call getenv() while they set themselves up.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

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

/* The answer to the code at `caller` for an environment variable that is not set. */
static char *tool_for(const char *variable, const void *caller) {
  for (const struct injection *injection = injections;
       injection < injections + sizeof(injections) / sizeof(*injections); injection++) {
    if (strcmp(variable, injection->variable) != 0)
      continue;
    TSCOPE_KEEP_ERRNO;
    bool ours = injection->answer && tscope_env_flag("TSCOPE", true);
    return ours ? (char *)injection->answer(caller) : NULL;
  }
  return NULL;
}

/* What getenv() does; for the programs that secure_getenv() refuses. */
static char *search_environment(const char *name) {
  size_t length = strlen(name);
  for (char **entry = environ; entry && *entry; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      return *entry + length + 1;
  return NULL;
}

static char *value_if_unset(const char *name, const void *caller) {
  if (TSCOPE_UNLIKELY(TSCOPE_ONCE(getauxval(AT_SECURE))))
    return search_environment(name);
  return name[0] == 'N' ? tool_for(name, caller) : NULL; /* as all of them begin */
}

char *tscope_hook_getenv(const char *name) __asm__("getenv");
TSCOPE_EXPORT char *tscope_hook_getenv(const char *name) {
  char *value = secure_getenv(name);
  return TSCOPE_LIKELY(value != NULL) ? value : value_if_unset(name, __builtin_return_address(0));
}
