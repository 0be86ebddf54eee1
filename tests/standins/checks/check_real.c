/* SPDX-License-Identifier: MIT
 *
 * check_real DRIVER LIBRARY FUNCTION: whether one of NVIDIA's own libraries, which has the CUDA
 * runtime built in, holds pointers to tscope's functions in place of the driver's. Run it under the
 * preload, with the stand-in DRIVER. FUNCTION is a function of the library that looks up the
 * driver's functions. The call fails, because the library needs NVIDIA's driver, but the library's
 * table is filled by then. Searches every word of the library's writable memory: no pointer to one
 * of the driver's own functions may be there. Exits with 3 if only such pointers are there.
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

static const char *const hooked[] = {
    "cuLaunchKernel",   "cuLaunchKernel_ptsz",       "cuLaunchCooperativeKernel",
    "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",     "cuLaunchCooperativeKernel_ptsz",
    "cuGraphLaunch",    "cuGraphLaunch_ptsz",        "cuMemAlloc_v2",
    "cuMemcpyAsync",    "cuMemcpyHtoDAsync_v2_ptsz", "cuMemCreate"};
enum { HOOKED = sizeof(hooked) / sizeof(*hooked) };

struct search {
  const char *library;
  const void *wanted;
  unsigned found;
};

static int search_object(struct dl_phdr_info *object, size_t bytes, void *user) {
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
  dl_iterate_phdr(search_object, &search);
  return search.found;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  void *c = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void *(*libc_dlsym)(void *, const char *);
  *(void **)&libc_dlsym = c ? dlvsym(c, "dlsym", OLDEST_GLIBC) : NULL;
  void *driver = dlopen(argv[1], RTLD_NOW);
  void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!libc_dlsym || !driver || !library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*function)(void *, ...);
  *(void **)&function = libc_dlsym(library, argv[3]);
  char arguments[4096];
  if (!function)
    return 1;
  printf("%s: %s returned %d\n", argv[2], argv[3],
         function(arguments, arguments, arguments, arguments));
  Dl_info info;
  dladdr(function, &info);
  unsigned ours = 0, drivers = 0;
  for (int i = 0; i < HOOKED; i++) {
    const void *own = libc_dlsym(driver, hooked[i]), *given = dlsym(driver, hooked[i]);
    unsigned wrapped = given == own ? 0 : occurrences(info.dli_fname, given),
             bare = occurrences(info.dli_fname, own);
    printf("  %-32s tscope's %u times, the driver's %u times\n", hooked[i], wrapped, bare);
    ours += wrapped;
    drivers += bare;
  }
  fflush(stdout);
  _exit(drivers && !ours ? 3 : drivers || !ours);
}
