/* SPDX-License-Identifier: MIT
 *
 * unlinked PLUGIN TIMES: like a Python interpreter. It does not link the CUDA runtime; only the
 * module that it loads RTLD_LOCAL does. It loads and unloads that so many times.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int launch_from(const char *file) {
  void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    fprintf(stderr, "unlinked: %s\n", dlerror());
    return 2;
  }
  unsigned long (*launches)(unsigned long) =
      (unsigned long (*)(unsigned long))dlsym(plugin, "plugin_launches");
  printf("%lu good\n", launches(1000));
  return dlclose(plugin);
}

/* Takes an address, so that a library that is loaded again is somewhere else. */
static void take_address_space(void) {
  mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv) {
  int times = argc > 2 ? atoi(argv[2]) : 1, status = argc > 1 ? 0 : 2;
  for (int i = 0; i < times && !status; i++, take_address_space())
    status = launch_from(argv[1]);
  return status;
}
