/* SPDX-License-Identifier: MIT
 *
 * What the runtimes of sanitizers ask for by these names, for programs that were built with one. A
 * program that defines a name itself comes before us.
 */
#include "record/hook.h"

/* AddressSanitizer ends a program at once if any other library comes before its runtime in the
 * search order, as a preloaded one does. */
const char *__asan_default_options(void);
TSCOPE_EXPORT TSCOPE_NOT_SANITIZED const char *__asan_default_options(void) {
  return "verify_asan_link_order=0";
}

/* ThreadSanitizer sees what this library asks of the C library, but not its atomic operations: it
 * would report races where there are none, and end the program with a status of its own. */
const char *__tsan_default_suppressions(void);
TSCOPE_EXPORT TSCOPE_NOT_SANITIZED const char *__tsan_default_suppressions(void) {
  return "called_from_lib:libtscope.so\nrace:libtscope.so\n";
}
