/* SPDX-License-Identifier: MIT */
#include "resolve/elf_object.h"
#include "format/text_parts.h"
#include "format/values.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

/* The C library makes most of these addresses; the kernel's own object has offsets. */
static const void *address(const struct elf_object *object, uintptr_t value) {
  return (const void *)(value < object->base ? object->base + value : value);
}

struct elf_object elf_object_read(uintptr_t base, const ElfW(Dyn) * dynamic) {
  struct elf_object object = {.base = base, .dynamic = dynamic, .soname = ""};
  uintptr_t soname = 0;
  for (const ElfW(Dyn) *entry = dynamic; entry && entry->d_tag != DT_NULL; entry++) {
    uintptr_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
    case DT_SYMTAB:
      object.symbols = address(&object, value);
      break;
    case DT_STRTAB:
      object.names = address(&object, value);
      break;
    case DT_VERSYM:
      object.versions = address(&object, value);
      break;
    case DT_GNU_HASH:
      object.gnu_hash = address(&object, value);
      break;
    case DT_HASH:
      object.sysv_hash = address(&object, value);
      break;
    case DT_SONAME:
      soname = value;
      break;
    case DT_JMPREL:
      object.relocations[0] = address(&object, value);
      break;
    case DT_PLTRELSZ:
      object.relocation_bytes[0] = value;
      break;
    case DT_RELA:
      object.relocations[1] = address(&object, value);
      break;
    case DT_RELASZ:
      object.relocation_bytes[1] = value;
      break;
    default:
      break;
    }
  }
  if (soname && object.names)
    object.soname = object.names + soname;
  return object;
}

struct elf_object elf_object_of(const struct dl_phdr_info *info) {
  const ElfW(Dyn) *dynamic = NULL;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return elf_object_read(info->dlpi_addr, dynamic);
}

void elf_object_extent(const struct dl_phdr_info *info, uintptr_t *begin, uintptr_t *end) {
  uintptr_t first = UINTPTR_MAX, last = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD)
      continue;
    uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
    first = MIN(from, first);
    last = MAX(to, last);
  }
  *begin = last ? first : 0;
  *end = last;
}

struct elf_name elf_name(const char *text) {
  struct elf_name name = {.text = text, .gnu = 5381};
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    name.gnu = name.gnu * 33 + *at;
    name.sysv = (name.sysv << 4) + *at;
    name.sysv = (name.sysv ^ (name.sysv >> 24 & 0xf0)) & 0x0fffffff;
  }
  return name;
}

static bool is_defined(const struct elf_object *object, uint32_t at, const char *name) {
  const uint16_t hidden_version = 0x8000;
  const ElfW(Sym) *symbol = &object->symbols[at];
  int type = ELF64_ST_TYPE(symbol->st_info), binding = ELF64_ST_BIND(symbol->st_info);
  int visibility = ELF64_ST_VISIBILITY(symbol->st_other);
  return symbol->st_shndx != SHN_UNDEF && symbol->st_value && binding != STB_LOCAL &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE || type == STT_GNU_IFUNC) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED) &&
         !(object->versions && object->versions[at] & hidden_version) &&
         strcmp(object->names + symbol->st_name, name) == 0;
}

/* Index of the symbol, 0 if there is none. */
static uint32_t find_by_gnu_hash(const struct elf_object *object, const struct elf_name *name) {
  const uint32_t *table = object->gnu_hash;
  uint32_t n_buckets = table[0], first = table[1], n_words = table[2];
  const ElfW(Addr) *filter = (const void *)(table + 4);
  const uint32_t bits = 8 * sizeof(*filter);
  if (!n_buckets || !n_words)
    return 0;
  ElfW(Addr) word = filter[name->gnu / bits % n_words];
  if (!(word >> name->gnu % bits & word >> (name->gnu >> table[3]) % bits & 1))
    return 0;
  const uint32_t *buckets = (const void *)(filter + n_words), *chain = buckets + n_buckets;
  uint32_t at = buckets[name->gnu % n_buckets];
  for (; at >= first; at++) {
    uint32_t hash = chain[at - first];
    if ((hash | 1) == (name->gnu | 1) && is_defined(object, at, name->text))
      return at;
    if (hash & 1) /* the last of its bucket */
      break;
  }
  return 0;
}

static uint32_t find_by_sysv_hash(const struct elf_object *object, const struct elf_name *name) {
  const uint32_t *table = object->sysv_hash, *buckets = table + 2, *chain = buckets + table[0];
  uint32_t at = table[0] ? buckets[name->sysv % table[0]] : 0;
  while (at && !is_defined(object, at, name->text))
    at = chain[at];
  return at;
}

static void visit_symbol(const struct elf_object *object, uint32_t at,
                         void (*visit)(const char *, void *), void *data) {
  const char *name = object->names + object->symbols[at].st_name;
  if (ELF64_ST_TYPE(object->symbols[at].st_info) == STT_FUNC && is_defined(object, at, name))
    visit(name, data);
}

void elf_object_each(const struct elf_object *object, void (*visit)(const char *, void *),
                     void *data) {
  if (!object->symbols || !object->names)
    return;
  if (!object->gnu_hash) {
    for (uint32_t at = 1; object->sysv_hash && at < object->sysv_hash[1]; at++)
      visit_symbol(object, at, visit, data);
    return;
  }
  const uint32_t *table = object->gnu_hash, first = table[1];
  const uint32_t *buckets =
      (const void *)((const ElfW(Addr) *)(const void *)(table + 4) + table[2]);
  const uint32_t *chain = buckets + table[0];
  for (uint32_t bucket = 0; bucket < table[0]; bucket++) {
    uint32_t at = buckets[bucket];
    while (at >= first && at) {
      visit_symbol(object, at, visit, data);
      if (chain[at - first] & 1) /* the last of its bucket */
        break;
      at++;
    }
  }
}

/* The function that a chooser chooses: called as the dynamic linker does it. */
static void *choose(uintptr_t chooser) {
#if defined(__aarch64__)
  const uint64_t has_second_argument = 1ull << 62;
  const uint64_t capabilities[] = {3 * sizeof(uint64_t), getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  return ((void *(*)(uint64_t, const uint64_t *))chooser)(capabilities[1] | has_second_argument,
                                                          capabilities);
#else
  return ((void *(*)(void))chooser)();
#endif
}

void *elf_object_find(const struct elf_object *object, const struct elf_name *name) {
  if (!object->symbols || !object->names)
    return NULL;
  uint32_t at = object->gnu_hash    ? find_by_gnu_hash(object, name)
                : object->sysv_hash ? find_by_sysv_hash(object, name)
                                    : 0;
  if (!at)
    return NULL;
  const ElfW(Sym) *symbol = &object->symbols[at];
  uintptr_t found = object->base + symbol->st_value;
  return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? choose(found) : (void *)found;
}

bool elf_object_is_called(const struct elf_object *object, const char *path, const char *text) {
  return strcmp(text, object->soname) == 0 || strcmp(text, path) == 0 ||
         strcmp(text, tscope_file_of(path)) == 0;
}

bool elf_object_needs(const struct elf_object *object, const struct elf_object *other,
                      const char *path) {
  for (const ElfW(Dyn) *entry = object->dynamic; entry && entry->d_tag != DT_NULL; entry++)
    if (entry->d_tag == DT_NEEDED && object->names &&
        elf_object_is_called(other, path, object->names + entry->d_un.d_val))
      return true;
  return false;
}
