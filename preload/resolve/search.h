/* SPDX-License-Identifier: MIT
 *
 * Who defines a name, among the objects that are loaded. Read in the objects' own tables, so that
 * no thread of the job waits for the dynamic linker: it holds its lock while it loads a library and
 * runs its constructors, and a constructor may wait for a thread that makes its first hooked call.
 * Nothing is allocated.
 *
 * What the program started with is the beginning of the global search order. Which of the objects
 * loaded later are part of that order (RTLD_GLOBAL), the tables do not say.
 */
#pragma once

#include "record/hook.h"
#include "resolve/elf_object.h"

/* tscope's own definitions are left aside. */
struct definers {
  void *next;   /* the first one behind tscope in what the program started with: RTLD_NEXT */
  void *loaded; /* the first one in an object loaded later */
  void *known;  /* ... in one that has one of the sonames */
  u32 n_loaded, n_known;
};
struct definers tscope_definers(const char *name, const char *const *sonames);

/* The first one of all, as RTLD_DEFAULT; NULL if there is none. */
void *tscope_first_definition(const char *name);

/* The one in the loaded library of this soname; NULL if there is none. */
void *tscope_definition_in(const char *soname, const char *name);

/* The one in the object that contains an address; NULL if there is none. */
void *tscope_definition_beside(const void *address, const char *name);

/* A loaded object: its addresses, its position in the list, and whether the program started with
 * it, so that it is never unloaded. */
struct tscope_object {
  uintptr_t begin, end;
  u32 order;
  bool from_start;
  const char *path; /* good as long as it stays loaded */
};

/* The object that contains an address; false if none does. */
bool tscope_object_of(const void *address, struct tscope_object *object);

/* The tables of that object, for many look-ups in it. They are good as long as it stays loaded. */
bool tscope_tables_of(const void *address, struct elf_object *tables);

static inline bool tscope_is_within(const struct tscope_object *object, const void *address) {
  return (uintptr_t)address - object->begin < object->end - object->begin;
}

/* Whether an address is in tscope itself. */
bool tscope_is_own(const void *address);
