/* SPDX-License-Identifier: MIT
 *
 * unlinked PLUGIN TIMES: like a Python interpreter. It does not link the CUDA runtime; only the
 * module that it loads RTLD_LOCAL does. It loads and unloads that so many times.
 *
 * unlinked driver DRIVER LIBRARY: looks whether there is a GPU, by loading the driver, and unloads
 * it; then it loads a library that links the driver.
 *
 * unlinked python LIBRARY: embeds Python for a while, and unloads it.
 *
 * unlinked kernel PLUGIN: launches by the handle of a kernel whose library was unloaded. This
 * stands for a handle that the CUDA runtime has given to another kernel since.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *load(const char *file) {
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "unlinked: %s\n", dlerror());
    exit(2);
  }
  return library;
}

static int launch_from(const char *file) {
  void *plugin = load(file);
  unsigned long (*launches)(unsigned long) =
      (unsigned long (*)(unsigned long))dlsym(plugin, "plugin_launches");
  printf("%lu good\n", launches(1000));
  return dlclose(plugin);
}

/* Takes an address, so that a library that is loaded again is somewhere else. */
static void take_address_space(void) {
  mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int driver_again(const char *driver, const char *file) {
  void *library = load(driver);
  int (*synchronize)(void) = (int (*)(void))dlsym(library, "cuCtxSynchronize");
  void *inside = dlsym(library, "fake_driver_place");
  printf("%d", synchronize());
  dlclose(library);
  mmap((void *)((uintptr_t)inside & ~(uintptr_t)4095), 4096, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
       0); /* so that it does not come back there */
  library = load(file);
  synchronize = (int (*)(void))dlsym(library, "synchronize_by_link");
  printf(" %d\n", synchronize());
  return 0;
}

static int kernel_of_the_past(const char *file) {
  void *plugin = load(file);
  const void *kernel = dlsym(plugin, "plugin_kernel");
  void *runtime = load("libcudart.so.13"); /* stays */
  int (*launch)(const void *, unsigned) =
      (int (*)(const void *, unsigned))dlsym(runtime, "fake_launch_in_blocks_of");
  printf("%d", launch(kernel, 32));
  dlclose(plugin);
  printf(" %d\n", launch(kernel, 64));
  return 0;
}

static int python_for_a_while(const char *file) {
  void *runtime = load("libcudart.so.13"), *python = load(file);
  int (*launch)(const void *, unsigned) =
      (int (*)(const void *, unsigned))dlsym(runtime, "fake_launch_in_blocks_of");
  int failed = 0;
  for (int i = 0; i < 10000; i++) {
    failed += launch(&failed, 32) != 0;
    if (i == 5000)
      dlclose(python);
  }
  printf("%d failed\n", failed);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "python") == 0)
    return python_for_a_while(argv[2]);
  if (argc > 3 && strcmp(argv[1], "driver") == 0)
    return driver_again(argv[2], argv[3]);
  if (argc > 2 && strcmp(argv[1], "kernel") == 0)
    return kernel_of_the_past(argv[2]);
  int times = argc > 2 ? atoi(argv[2]) : 1, status = argc > 1 ? 0 : 2;
  for (int i = 0; i < times && !status; i++, take_address_space())
    status = launch_from(argv[1]);
  return status;
}
