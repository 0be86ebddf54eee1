/* SPDX-License-Identifier: MIT */
#include "tool_injection/tool_injection.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "record/hook.h"
#include "settings/env.h"
#include "tool_injection/tool_injection.def"

#pragma GCC visibility push(hidden)
#define SEAT(variable, answer, exported) const char *answer(const void *caller);
TSCOPE_THREAD_SLOTS(SEAT)
#undef SEAT
#pragma GCC visibility pop

/* Weak, so that a program may link the core with only some of the families. */
#define SEAT(variable, answer, exported) extern __typeof__(answer) answer __attribute__((weak));
TSCOPE_THREAD_SLOTS(SEAT)
#undef SEAT

static const struct seat {
  const char *variable;
  const char *(*answer)(const void *caller);
} seats[] = {
#define SEAT(variable, answer, exported) {#variable, answer},
    TSCOPE_THREAD_SLOTS(SEAT)
#undef SEAT
};

char *tscope_seat(const char *variable, const void *caller) {
  for (const struct seat *seat = seats; seat < seats + sizeof(seats) / sizeof(*seats); seat++) {
    if (strcmp(variable, seat->variable) != 0)
      continue;
    int saved = errno;
    bool ours = seat->answer && !getauxval(AT_SECURE) && tscope_env_flag("TSCOPE", true);
    const char *answer = ours ? seat->answer(caller) : NULL;
    errno = saved;
    return (char *)answer;
  }
  return NULL;
}
