/* SPDX-License-Identifier: MIT
 *
 * Imitates a kernel with pages of 64 KiB, which are common on aarch64, on a kernel with smaller
 * pages. Preloaded before libtscope.so, it reports that page size, allocates whole pages of it,
 * and returns the errors that such a kernel returns.
 */
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define EXPORT __attribute__((visibility("default")))

static const size_t page = 65536;

static size_t round_up(size_t bytes) {
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

/* The linker makes only whole pages read-only after relocation, so a part of the last large page
 * stays writable. */
static int unlock(struct dl_phdr_info *object, size_t bytes, void *nothing) {
  (void)bytes, (void)nothing;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &object->dlpi_phdr[i];
    uintptr_t from = object->dlpi_addr + header->p_vaddr, to = from + header->p_memsz;
    uintptr_t last_page = to & ~(page - 1), begin = from & ~(uintptr_t)4095;
    if (header->p_type == PT_GNU_RELRO && last_page < to)
      syscall(SYS_mprotect, last_page > begin ? last_page : begin,
              to - (last_page > begin ? last_page : begin), PROT_READ | PROT_WRITE);
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
  if (address) /* such mappings are not rounded */
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
  if (offset % (off_t)page) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  uintptr_t range = (uintptr_t)syscall(SYS_mmap, NULL, round_up(bytes) + page, PROT_NONE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if ((void *)range == MAP_FAILED)
    return MAP_FAILED;
  return (void *)syscall(SYS_mmap, (range + page - 1) & ~(page - 1), round_up(bytes), protection,
                         flags | MAP_FIXED, fd, offset);
}

EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...);
void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...) {
  if (!is_page(old) || flags & MREMAP_FIXED) { /* nobody here asks for a fixed place */
    errno = EINVAL;
    return MAP_FAILED;
  }
  if (!(flags & MREMAP_MAYMOVE))
    return (void *)syscall(SYS_mremap, old, round_up(old_bytes), round_up(bytes), flags);
  void *place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    return place;
  return (void *)syscall(SYS_mremap, old, round_up(old_bytes), round_up(bytes),
                         flags | MREMAP_FIXED, place);
}

/* A page that lies partly in a file can be populated. Of this kernel's pages, those behind the end
 * of the file cannot. */
EXPORT int madvise(void *address, size_t bytes, int advice);
int madvise(void *address, size_t bytes, int advice) {
  if (!is_page(address))
    return refuse();
  size_t whole = advice == MADV_POPULATE_WRITE ? (bytes + 4095) & ~(size_t)4095 : round_up(bytes);
  return (int)syscall(SYS_madvise, address, whole, advice);
}

EXPORT int mprotect(void *address, size_t bytes, int protection);
int mprotect(void *address, size_t bytes, int protection) {
  return is_page(address) ? (int)syscall(SYS_mprotect, address, round_up(bytes), protection)
                          : refuse();
}

EXPORT int munmap(void *address, size_t bytes);
int munmap(void *address, size_t bytes) {
  return is_page(address) ? (int)syscall(SYS_munmap, address, round_up(bytes)) : refuse();
}
