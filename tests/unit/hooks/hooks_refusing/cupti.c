/* SPDX-License-Identifier: MIT
 *
 * A CUPTI that may not be used (no permission, another tool uses it, no driver): all its functions
 * exist, and each returns an error.
 */
#include "gpu/cupti_library.h"

#define REFUSING_EXPORT __attribute__((visibility("default")))

extern int refusals;
REFUSING_EXPORT int refusals;

static int says_no(void) {
  refusals++;
  return 35; /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
}

#define X(name, needed, params)                                                                    \
  int name(void);                                                                                  \
  REFUSING_EXPORT int name(void) {                                                                 \
    return says_no();                                                                              \
  }
CUPTI_FUNCTIONS(X)
