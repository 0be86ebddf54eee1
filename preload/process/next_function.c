/* SPDX-License-Identifier: MIT */
#include "process/next_function.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The dynamic linker's list of objects, in its order of search. The program's own dynamic section
 * leads to it, as it does for debuggers. */
static const struct link_map *first_object(void) {
  const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
  size_t n = headers ? getauxval(AT_PHNUM) : 0;
  uintptr_t base = 0;
  const ElfW(Dyn) *entry = NULL;
  for (size_t i = 0; i < n; i++)
    if (headers[i].p_type == PT_PHDR)
      base = (uintptr_t)headers - headers[i].p_vaddr;
  for (size_t i = 0; i < n; i++)
    if (headers[i].p_type == PT_DYNAMIC)
      entry = (const void *)(base + headers[i].p_vaddr);
  for (; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr)
      return ((const struct r_debug *)entry->d_un.d_ptr)->r_map;
  return NULL;
}

struct tables {
  const ElfW(Sym) * symbols;
  const char *names;
  const uint32_t *hash; /* n_buckets, first symbol, words of the filter, shift; filter; buckets */
};

static struct tables read_tables(const struct link_map *object) {
  struct tables tables = {0};
  for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
    /* The C library makes most of these addresses; the kernel's own object has offsets. */
    uintptr_t value = entry->d_un.d_ptr;
    const void *address = (const void *)(value < object->l_addr ? object->l_addr + value : value);
    if (entry->d_tag == DT_SYMTAB)
      tables.symbols = address;
    else if (entry->d_tag == DT_STRTAB)
      tables.names = address;
    else if (entry->d_tag == DT_GNU_HASH)
      tables.hash = address;
  }
  return tables;
}

static uint32_t gnu_hash(const char *name) {
  uint32_t hash = 5381;
  for (; *name; name++)
    hash = hash * 33 + (unsigned char)*name;
  return hash;
}

static void *function_in(const struct link_map *object, const char *name) {
  struct tables t = read_tables(object);
  if (!t.symbols || !t.names || !t.hash || !t.hash[0])
    return NULL;
  uint32_t n_buckets = t.hash[0], first = t.hash[1], hash = gnu_hash(name);
  const uint32_t *buckets = t.hash + 4 + t.hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chain = buckets + n_buckets;
  uint32_t at = buckets[hash % n_buckets];
  if (at < first)
    return NULL;
  for (;; at++) {
    const ElfW(Sym) *symbol = &t.symbols[at];
    bool is_it = (chain[at - first] | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
                 ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
                 strcmp(t.names + symbol->st_name, name) == 0;
    if (is_it)
      return (void *)(object->l_addr + symbol->st_value);
    if (chain[at - first] & 1) /* the last of its bucket */
      return NULL;
  }
}

void *tscope_next_function(const char *name) {
  const struct link_map *object = first_object();
  void *function = NULL;
  while (object && object->l_ld != _DYNAMIC)
    object = object->l_next;
  for (object = object ? object->l_next : NULL; object && !function; object = object->l_next)
    function = function_in(object, name);
  return function;
}
