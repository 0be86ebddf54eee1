/* SPDX-License-Identifier: MIT */
#include "resolve/call_slots.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/hook.h"
#include "resolve/loaded_objects.h"

#if defined(__x86_64__)
enum { SLOT_CALL = R_X86_64_JUMP_SLOT, SLOT_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_CALL = R_AARCH64_JUMP_SLOT, SLOT_DATA = R_AARCH64_GLOB_DAT };
#else
enum { SLOT_CALL = -1, SLOT_DATA = -1 };
#endif

struct search {
  const char *function;
  const void *ours;
  u32 replaced;
};

/* One loaded object, as the dynamic linker sees it. */
struct object {
  uintptr_t base;
  uintptr_t locked_from, locked_to; /* what the linker made read-only */
  const ElfW(Sym) * symbols;
  const char *names;
  const ElfW(Rela) * tables[2];
  size_t table_bytes[2];
};

/* The C library gives addresses in this section, others offsets. */
static uintptr_t address(const struct object *object, uintptr_t value) {
  return value < object->base ? object->base + value : value;
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * entry) {
  for (; entry->d_tag != DT_NULL; entry++) {
    uintptr_t value = entry->d_un.d_val;
    switch (entry->d_tag) {
    case DT_SYMTAB:
      object->symbols = (const void *)address(object, value);
      break;
    case DT_STRTAB:
      object->names = (const void *)address(object, value);
      break;
    case DT_JMPREL:
      object->tables[0] = (const void *)address(object, value);
      break;
    case DT_PLTRELSZ:
      object->table_bytes[0] = value;
      break;
    case DT_RELA:
      object->tables[1] = (const void *)address(object, value);
      break;
    case DT_RELASZ:
      object->table_bytes[1] = value;
      break;
    default:
      break;
    }
  }
}

static bool replace(const struct object *object, uintptr_t slot, const void *ours) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = slot & ~(page - 1), end = (slot + sizeof(void *) + page - 1) & ~(page - 1);
  bool locked = slot >= object->locked_from && slot < object->locked_to;
  if (locked && mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n((uintptr_t *)slot, (uintptr_t)ours, __ATOMIC_RELEASE);
  if (locked)
    mprotect((void *)begin, end - begin, PROT_READ);
  return true;
}

static bool is_wanted(const struct dl_phdr_info *info) {
  const char *slash = strrchr(info->dlpi_name, '/');
  const char *file = slash ? slash + 1 : info->dlpi_name;
  return !*info->dlpi_name || strncmp(file, "libpython", 9) == 0;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *user) {
  struct search *search = user;
  struct object object = {.base = info->dlpi_addr};
  const ElfW(Dyn) *dynamic = NULL;
  (void)bytes;
  if (!is_wanted(info))
    return 0;
  for (u32 i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type == PT_DYNAMIC)
      dynamic = (const void *)(info->dlpi_addr + header->p_vaddr);
    if (header->p_type == PT_GNU_RELRO) {
      /* Whole pages, as the dynamic linker does it: a last part of a page stays writable. */
      uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = info->dlpi_addr + header->p_vaddr;
      object.locked_from = from & ~(page - 1);
      object.locked_to = (from + header->p_memsz) & ~(page - 1);
    }
  }
  if (dynamic)
    read_dynamic(&object, dynamic);
  for (u32 t = 0; t < 2 && object.symbols && object.names; t++)
    for (size_t i = 0; object.tables[t] && i < object.table_bytes[t] / sizeof(ElfW(Rela)); i++) {
      const ElfW(Rela) *entry = &object.tables[t][i];
      int type = (int)ELF64_R_TYPE(entry->r_info);
      if (type != SLOT_CALL && type != SLOT_DATA)
        continue;
      const char *name = object.names + object.symbols[ELF64_R_SYM(entry->r_info)].st_name;
      if (strcmp(name, search->function) == 0)
        search->replaced += replace(&object, object.base + entry->r_offset, search->ours);
    }
  return 0;
}

u32 tscope_slots_replace(const char *function, const void *ours) {
  struct search search = {.function = function, .ours = ours};
  tscope_each_object(visit, &search);
  return search.replaced;
}
