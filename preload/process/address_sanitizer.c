/* SPDX-License-Identifier: MIT
 *
 * A program that was built with AddressSanitizer ends at once if any other library comes before its
 * runtime in the search order, as a preloaded one does. The runtime asks for its options by this
 * name; a program that defines it itself comes before us.
 */
#include "record/hook.h"

const char *__asan_default_options(void);
TSCOPE_EXPORT TSCOPE_NOT_SANITIZED const char *__asan_default_options(void) {
  return "verify_asan_link_order=0";
}
