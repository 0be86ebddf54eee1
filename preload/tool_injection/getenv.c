/* SPDX-License-Identifier: MIT
 *
 * getenv(), which answers for the variables of tool_injection.def and otherwise is the C library's
 * own: a variable that is set is never hidden or changed, and the environment itself is never
 * written.
 *
 * The next function of the name is the C library's, or that of another preload. It is found without
 * allocating memory: memory allocators call getenv() while they set themselves up.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/hook.h"
#include "resolve/next_function.h"
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
       injection < injections + LENGTH_OF(injections); injection++) {
    if (strcmp(variable, injection->variable) != 0)
      continue;
    TSCOPE_KEEP_ERRNO;
    bool ours = injection->answer && tscope_is_glibc() && tscope_is_wanted();
    return ours ? (char *)injection->answer(caller) : NULL;
  }
  return NULL;
}

/* What getenv() does, where the next one is not known. */
static char *search_environment(const char *name) {
  size_t length = strlen(name);
  for (char **entry = environ; entry && *entry; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      return *entry + length + 1;
  return NULL;
}

char *tscope_hook_getenv(const char *name) __asm__("getenv");
TSCOPE_EXPORT char *tscope_hook_getenv(const char *name) {
  char *(*real)(const char *) = TSCOPE_NEXT_FUNCTION("getenv");
  char *value = real ? real(name) : search_environment(name);
  bool may_be_a_tools = TSCOPE_UNLIKELY(!value && name[0] == 'N'); /* as all of them begin */
  return may_be_a_tools ? tool_for(name, __builtin_return_address(0)) : value;
}
