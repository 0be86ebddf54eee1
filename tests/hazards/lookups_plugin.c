/* SPDX-License-Identifier: MIT
 *
 * A plugin that has cu_marker() and links a library that has it too: what comes next to it is the
 * library's, not the program's.
 */
#include <dlfcn.h>

#include "lookups.h"

const char *cu_marker(void) {
  return "plugin";
}

const char *next_of_plugin(void) {
  const char *(*marker)(void);
  if (!links_the_library())
    return "not linked";
  *(void **)&marker = dlsym(RTLD_NEXT, "cu_marker");
  return marker ? marker() : "nobody";
}
