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
#include "tool_injection/tool_injection.h"

/* What getenv() does; for the programs that secure_getenv() refuses. */
static char *search_environment(const char *name) {
  size_t length = strlen(name);
  for (char **entry = environ; entry && *entry; entry++)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
      return *entry + length + 1;
  return NULL;
}

static bool is_secure(void) {
  static u8 known; /* 1: no, 2: yes */
  u8 secure = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (TSCOPE_UNLIKELY(!secure)) {
    secure = getauxval(AT_SECURE) ? 2 : 1;
    __atomic_store_n(&known, secure, __ATOMIC_RELAXED);
  }
  return secure == 2;
}

static char *value_if_unset(const char *name, const void *caller) {
  if (TSCOPE_UNLIKELY(is_secure()))
    return search_environment(name);
  return name[0] == 'N' ? tscope_tool_injection(name, caller) : NULL; /* as all of them begin */
}

char *tscope_hook_getenv(const char *name) __asm__("getenv");
TSCOPE_EXPORT char *tscope_hook_getenv(const char *name) {
  char *value = secure_getenv(name);
  return TSCOPE_LIKELY(value != NULL) ? value : value_if_unset(name, __builtin_return_address(0));
}
