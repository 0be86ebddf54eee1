/* SPDX-License-Identifier: MIT
 *
 * check_real DRIVER LIBRARY FUNCTION: whether one of NVIDIA's own libraries, which carries the CUDA
 * runtime inside it, holds tscope's functions in place of the driver's. Run under the preload, over
 * the stand-in DRIVER. FUNCTION is one of the library's that makes it look the driver up; it fails
 * then, since the library wants NVIDIA's driver, but it has its table. Every word of the library's
 * writable memory is looked at: the driver's own functions must not be among them. Exits with 3
 * where they alone are.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

static const char *const launches[] = {
    "cuLaunchKernel",   "cuLaunchKernel_ptsz",       "cuLaunchCooperativeKernel",
    "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",     "cuLaunchCooperativeKernel_ptsz",
    "cuGraphLaunch",    "cuGraphLaunch_ptsz",        "cuMemAlloc_v2",
    "cuMemcpyAsync",    "cuMemcpyHtoDAsync_v2_ptsz", "cuMemCreate"};
enum { LAUNCHES = sizeof(launches) / sizeof(*launches) };

struct search {
  const char *library;
  const void *wanted;
  unsigned found;
};

static int look_into(struct dl_phdr_info *object, size_t bytes, void *user) {
  struct search *search = user;
  (void)bytes;
  if (!object->dlpi_name || strcmp(object->dlpi_name, search->library))
    return 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
      continue;
    const void *const *word =
        (const void *const *)(object->dlpi_addr + ((part->p_vaddr + 7) & ~7ul));
    const void *const *end =
        (const void *const *)(object->dlpi_addr + part->p_vaddr + part->p_memsz);
    for (; word + 1 <= end; word++)
      search->found += *word == search->wanted;
  }
  return 1;
}

static unsigned occurrences(const char *library, const void *wanted) {
  struct search search = {library, wanted, 0};
  dl_iterate_phdr(look_into, &search);
  return search.found;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  void *c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void *(*plain_dlsym)(void *, const char *);
  *(void **)&plain_dlsym = c ? dlvsym(c, "dlsym", OLDEST_GLIBC) : NULL;
  void *driver = dlopen(argv[1], RTLD_NOW);
  void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!plain_dlsym || !driver || !library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*function)(void *, ...);
  *(void **)&function = plain_dlsym(library, argv[3]);
  char room[4096];
  if (!function)
    return 1;
  printf("%s: %s returned %d\n", argv[2], argv[3], function(room, room, room, room));
  Dl_info info;
  dladdr(function, &info);
  unsigned ours = 0, drivers = 0;
  for (int i = 0; i < LAUNCHES; i++) {
    const void *own = plain_dlsym(driver, launches[i]), *given = dlsym(driver, launches[i]);
    unsigned wrapped = given == own ? 0 : occurrences(info.dli_fname, given),
             bare = occurrences(info.dli_fname, own);
    printf("  %-32s tscope's %u times, the driver's %u times\n", launches[i], wrapped, bare);
    ours += wrapped;
    drivers += bare;
  }
  fflush(stdout);
  _exit(drivers && !ours ? 3 : drivers || !ours);
}
