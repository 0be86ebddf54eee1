/* SPDX-License-Identifier: MIT */
#include "resolve/call_slots.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "record/hook.h"
#include "resolve/elf_object.h"
#include "resolve/loaded_objects.h"

#if defined(__x86_64__)
enum { SLOT_CALL = R_X86_64_JUMP_SLOT, SLOT_DATA = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_CALL = R_AARCH64_JUMP_SLOT, SLOT_DATA = R_AARCH64_GLOB_DAT };
#else
enum { SLOT_CALL = -1, SLOT_DATA = -1 };
#endif

struct slot_search {
  const char *function;
  const void *ours;
  u32 replaced;
};

/* An object, and what of it the linker made read-only. */
struct caller {
  struct elf_object object;
  uintptr_t locked_from, locked_to;
};

static bool replace(const struct caller *caller, uintptr_t slot, const void *ours) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = slot & ~(page - 1), end = (slot + sizeof(void *) + page - 1) & ~(page - 1);
  bool locked = slot >= caller->locked_from && slot < caller->locked_to;
  if (locked && mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE) != 0)
    return false;
  __atomic_store_n((uintptr_t *)slot, (uintptr_t)ours, __ATOMIC_RELEASE);
  if (locked)
    mprotect((void *)begin, end - begin, PROT_READ);
  return true;
}

static bool is_wanted(const struct dl_phdr_info *info) {
  return !*info->dlpi_name || tscope_begins_with(tscope_file_of(info->dlpi_name), "libpython");
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *user) {
  struct slot_search *search = user;
  (void)bytes;
  if (!is_wanted(info))
    return 0;
  struct caller caller = {.object = elf_object_of(info)};
  const struct elf_object *object = &caller.object;
  for (u32 i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type == PT_GNU_RELRO) {
      /* Whole pages, as the dynamic linker does it: a last part of a page stays writable. */
      uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = info->dlpi_addr + header->p_vaddr;
      caller.locked_from = from & ~(page - 1);
      caller.locked_to = (from + header->p_memsz) & ~(page - 1);
    }
  }
  for (u32 t = 0; t < 2 && object->symbols && object->names; t++)
    for (size_t i = 0; i < object->relocation_bytes[t] / sizeof(ElfW(Rela)); i++) {
      const ElfW(Rela) *entry = &object->relocations[t][i];
      int type = (int)ELF64_R_TYPE(entry->r_info);
      if (type != SLOT_CALL && type != SLOT_DATA)
        continue;
      const char *name = object->names + object->symbols[ELF64_R_SYM(entry->r_info)].st_name;
      if (strcmp(name, search->function) == 0)
        search->replaced += replace(&caller, object->base + entry->r_offset, search->ours);
    }
  return 0;
}

u32 tscope_slots_replace(const char *function, const void *ours) {
  struct slot_search search = {.function = function, .ours = ours};
  tscope_each_object(visit, &search);
  return search.replaced;
}
