/* SPDX-License-Identifier: MIT
 *
 * first_calls LIBRARY...: loads libraries, as Python loads modules, whose constructors wait for a
 * thread that makes its first call of each function. The dynamic linker's lock is held all the
 * time: whoever waits for it waits for ever, and the program ends with exit status 9.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  alarm(20);
  int mode = RTLD_NOW | RTLD_LOCAL;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "global") == 0)
      mode = RTLD_NOW | RTLD_GLOBAL;
    else if (!dlopen(argv[i], mode)) {
      printf("%s\n", dlerror());
      return 2;
    }
  }
  return 0;
}
