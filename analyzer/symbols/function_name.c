/* SPDX-License-Identifier: MIT */
#include "symbols/function_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "kernels/kernel_text.h"

/* "c10d::Work<...>::wait" as "c10d::Work::wait", "f(int)::{lambda(int)#1}" as "f::{lambda#1}": what
 * is in brackets helps little here and fills whole screens. */
static void drop_brackets(char *name) {
  char *to = name;
  int depth = 0;
  if (strstr(name, "operator<") || strstr(name, "operator>") || strstr(name, "operator-") ||
      strstr(name, "operator("))
    return;
  for (const char *at = name; *at; at++) {
    depth += *at == '<' || *at == '(';
    if (!depth)
      *to++ = *at;
    depth -= (*at == '>' || *at == ')') && depth > 0;
  }
  *to = '\0';
}

const char *function_name(struct arena *arena, const char *symbol) {
  SCOPED char *demangled = kernel_demangle(symbol);
  bool cpp = strcmp(demangled, symbol) != 0;
  SCOPED char *name = cpp ? kernel_strip(demangled) : NULL;
  if (name)
    drop_brackets(name);
  const char *whole = name && *name ? name : symbol;
  const char *text = arena_copy(arena, whole, strcspn(whole, "@")); /* without "@@GLIBC_2.3.2" */
  return text;
}
