/* SPDX-License-Identifier: MIT
 *
 * A plugin with cu_marker() that links a library with another one: RTLD_NEXT from the plugin finds
 * the library's, not the program's.
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
