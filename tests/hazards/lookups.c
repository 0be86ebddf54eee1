/* SPDX-License-Identifier: MIT
 *
 * Look-ups by name, as programs and libraries make them: the result depends on the caller. Prints
 * in which object each name was found, which must be the same with a preloaded library that has its
 * own dlsym().
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lookups.h"

/* The program, the plugin, and the library that the plugin links all have a function of this name.
 */
LOOKUPS_EXPORT const char *cu_marker(void) {
  return "program";
}

static const char *call(void *function) {
  const char *(*marker)(void);
  *(void **)&marker = function;
  return marker ? marker() : "nobody";
}

static const char *error(void) {
  const char *text = dlerror();
  return text ? strrchr(text, ':') : "none";
}

int main(int argc, char **argv) {
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!plugin) {
    printf("%s\n", dlerror());
    return 1;
  }
  printf("by default: %s\n", call(dlsym(RTLD_DEFAULT, "cu_marker")));
  printf("next to the program: %s\n", call(dlsym(RTLD_NEXT, "cu_marker")));
  printf("in the plugin: %s\n", call(dlsym(plugin, "cu_marker")));
  const char *(*ask_plugin)(void);
  *(void **)&ask_plugin = dlsym(plugin, "next_of_plugin");
  printf("next to the plugin: %s\n", ask_plugin());
  void *self = dlopen(NULL, RTLD_NOW);
  printf("in the program: %s\n", call(dlsym(self, "cu_marker")));
  dlerror();
  errno = 55;
  printf("nowhere: %s", dlsym(plugin, "cu_nowhere") ? "found" : "NULL");
  printf(", errno %d, error%s", errno, error());
  printf(", then %s\n", error());
  printf("nowhere by default: %s", dlsym(RTLD_DEFAULT, "cuNowhere") ? "found" : "NULL");
  dlsym(RTLD_DEFAULT, "cu_marker");
  printf(", then %s\n", error());
  printf("getppid: %s\n", dlsym(RTLD_DEFAULT, "getppid") ? "found" : "NULL");
  return 0;
}
