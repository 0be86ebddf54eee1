/* SPDX-License-Identifier: MIT */
#include "resolve/next_function.h"

#include <stdint.h>
#include <sys/auxv.h>

#include "resolve/elf_object.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The dynamic linker's list of objects, in its order of search. The program's own dynamic section
 * leads to it, as it does for debuggers; where musl's linker was started as a program, the headers
 * are the linker's, which do not say where they are, but a handle is an object of its list. */
static const struct link_map *first_object(void) {
  const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
  size_t n = headers ? getauxval(AT_PHNUM) : 0;
  uintptr_t base = 0;
  bool has_base = false;
  const ElfW(Dyn) *entry = NULL;
  for (size_t i = 0; i < n; i++)
    if (headers[i].p_type == PT_PHDR) {
      base = (uintptr_t)headers - headers[i].p_vaddr;
      has_base = true;
    }
  for (size_t i = 0; i < n && has_base; i++)
    if (headers[i].p_type == PT_DYNAMIC)
      entry = (const void *)(base + headers[i].p_vaddr);
  for (; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr)
      return ((const struct r_debug *)entry->d_un.d_ptr)->r_map;
  return tscope_is_glibc() ? NULL : dlopen(NULL, RTLD_NOW);
}

void *tscope_next_function(const char *name) {
  const struct link_map *object = first_object();
  const struct elf_name wanted = elf_name(name);
  void *function = NULL;
  while (object && object->l_ld != _DYNAMIC)
    object = object->l_next;
  for (object = object ? object->l_next : NULL; object && !function; object = object->l_next) {
    struct elf_object tables = elf_object_read(object->l_addr, object->l_ld);
    function = elf_object_find(&tables, &wanted);
  }
  return function;
}

void *tscope_next_function_once(void **next, const char *name) {
  static char none;
  void *found = __atomic_load_n(next, __ATOMIC_RELAXED);
  if (!found) {
    found = tscope_next_function(name);
    found = found ? found : &none;
    __atomic_store_n(next, found, __ATOMIC_RELAXED);
  }
  return found == &none ? NULL : found;
}
