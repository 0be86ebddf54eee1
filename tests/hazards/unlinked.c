/* SPDX-License-Identifier: MIT
 *
 * unlinked PLUGIN: like a Python interpreter. It does not link the CUDA runtime; only the module
 * that it loads RTLD_LOCAL does.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!plugin) {
    fprintf(stderr, "unlinked: %s\n", dlerror());
    return 2;
  }
  unsigned long (*launches)(unsigned long) =
      (unsigned long (*)(unsigned long))dlsym(plugin, "plugin_launches");
  printf("%lu good\n", launches(1000));
  return 0;
}
