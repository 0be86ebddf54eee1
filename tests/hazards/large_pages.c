/* SPDX-License-Identifier: MIT
 *
 * Pages of 64 KiB, as kernels of aarch64 machines often have them, on a kernel whose pages are
 * smaller: preloaded before libtscope.so, it says that pages are that large, gives memory out by
 * whole ones and refuses what such a kernel refuses.
 */
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const size_t page = 65536;

static size_t whole(size_t bytes) {
  return (bytes + page - 1) & ~(page - 1);
}

EXPORT long sysconf(int name);
long sysconf(int name) {
  extern long next(int) __asm__("__sysconf");
  return name == _SC_PAGESIZE ? (long)page : next(name);
}

EXPORT int getpagesize(void);
int getpagesize(void) {
  return (int)page;
}

static long is_page(const void *address) {
  return ((uintptr_t)address & (page - 1)) == 0;
}

/* Of what is to be read-only after relocation, the linker leaves the last part of a page writable.
 */
static int unlock(struct dl_phdr_info *object, size_t bytes, void *nothing) {
  (void)bytes, (void)nothing;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    uintptr_t from = object->dlpi_addr + header->p_vaddr, to = from + header->p_memsz;
    uintptr_t locked = to & ~(page - 1), begin = from & ~(uintptr_t)4095;
    if (header->p_type == PT_GNU_RELRO && locked < to)
      syscall(SYS_mprotect, locked > begin ? locked : begin, to - (locked > begin ? locked : begin),
              PROT_READ | PROT_WRITE);
  }
  return 0;
}

__attribute__((constructor)) static void unlock_all(void) {
  dl_iterate_phdr(unlock, NULL);
}

static int refuse(void) {
  errno = EINVAL;
  return -1;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (address) /* the loader and threads' stacks come by other ways */
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
  if (offset % (off_t)page) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  uintptr_t room = (uintptr_t)syscall(SYS_mmap, NULL, whole(bytes) + page, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if ((void *)room == MAP_FAILED)
    return MAP_FAILED;
  return (void *)syscall(SYS_mmap, (room + page - 1) & ~(page - 1), whole(bytes), protection,
                         flags | MAP_FIXED, fd, offset);
}

EXPORT int madvise(void *address, size_t bytes, int advice);
int madvise(void *address, size_t bytes, int advice) {
  return is_page(address) ? (int)syscall(SYS_madvise, address, whole(bytes), advice) : refuse();
}

EXPORT int mprotect(void *address, size_t bytes, int protection);
int mprotect(void *address, size_t bytes, int protection) {
  return is_page(address) ? (int)syscall(SYS_mprotect, address, whole(bytes), protection)
                          : refuse();
}

EXPORT int munmap(void *address, size_t bytes);
int munmap(void *address, size_t bytes) {
  return is_page(address) ? (int)syscall(SYS_munmap, address, whole(bytes)) : refuse();
}
