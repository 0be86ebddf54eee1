/* SPDX-License-Identifier: MIT
 *
 * The tables of a loaded object, in memory as the dynamic linker made it: what it is called, what
 * it needs, what it defines, and where it calls others. All readers of such tables use this one. It
 * takes no lock and allocates nothing.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everything points into the object, which must stay loaded. */
struct elf_object {
  uintptr_t base;
  const ElfW(Dyn) * dynamic;
  const ElfW(Sym) * symbols;
  const char *names;        /* the strings of all tables */
  const uint16_t *versions; /* of each symbol; NULL: it has none */
  const uint32_t
      *gnu_hash; /* n_buckets, first symbol, words of the filter, shift; filter; buckets */
  const uint32_t *sysv_hash; /* n_buckets, n_symbols; buckets; chain */
  const char *soname;        /* "" if it gives none */
  const ElfW(Rela) * relocations[2];
  size_t relocation_bytes[2];
};

/* A name to be found in several objects. */
struct elf_name {
  const char *text;
  uint32_t gnu, sysv; /* its hashes */
};

struct elf_object elf_object_read(uintptr_t base, const ElfW(Dyn) * dynamic);
struct elf_object elf_object_of(const struct dl_phdr_info *info);

/* From the first to the last address of what is loaded of it; both 0 if nothing is. */
void elf_object_extent(const struct dl_phdr_info *info, uintptr_t *begin, uintptr_t *end);

struct elf_name elf_name(const char *text);

/* What dlsym() without a version would find in this object alone: a function or a variable that it
 * defines for others, in its default version. NULL if there is none. Calls the function that
 * chooses an implementation, if it is one that is chosen at run time. */
void *elf_object_find(const struct elf_object *object, const struct elf_name *name);

/* Calls `visit` with the name of each function that the object defines for others. */
void elf_object_each(const struct elf_object *object, void (*visit)(const char *, void *),
                     void *data);

/* Whether a DT_NEEDED of this text means the object, which was loaded from `path`; the same for
 * dlopen() of a name without a folder. */
bool elf_object_is_called(const struct elf_object *object, const char *path, const char *text);

/* Whether the object has a DT_NEEDED that means the other one. */
bool elf_object_needs(const struct elf_object *object, const struct elf_object *other,
                      const char *path);
