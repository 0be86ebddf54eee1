/* SPDX-License-Identifier: MIT */
#include "resolve/search.h"

#include <string.h>

#include "resolve/elf_object.h"
#include "resolve/loaded_objects.h"

/* No object needs a preloaded library, so the search begins behind the C library, which comes after
 * all of them. From there on, an object that an earlier one needs was there from the start. The
 * first that none needs was loaded later. */
struct start {
  struct elf_object object;
  const char *path;
  u32 order, n;
  bool has_c_library, is_needed;
};

static int check_whether_needed(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct start *start = data;
  (void)bytes;
  if (start->n++ == start->order)
    return 1;
  struct elf_object earlier = elf_object_of(info);
  start->is_needed = elf_object_needs(&earlier, &start->object, start->path);
  return start->is_needed;
}

static int count_from_start(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct start *start = data;
  (void)bytes;
  if (start->has_c_library) {
    start->object = elf_object_of(info);
    start->path = info->dlpi_name;
    start->is_needed = false;
    start->n = 0;
    tscope_each_object(check_whether_needed, start);
    if (!start->is_needed)
      return 1;
  }
  struct elf_object object = elf_object_of(info);
  start->has_c_library |= strcmp(object.soname, "libc.so.6") == 0;
  start->order++;
  return 0;
}

static u32 objects_from_start(void) {
  static u32 known;
  u32 n = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (n)
    return n;
  struct start start = {0};
  tscope_each_object(count_from_start, &start);
  __atomic_store_n(&known, start.order, __ATOMIC_RELAXED);
  return start.order;
}

struct object_search {
  const void *address;
  struct tscope_object *hit;
  struct elf_object *tables; /* of the hit; NULL: they are not wanted */
  u32 order;
};

static int check_object(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  struct object_search *search = data;
  struct tscope_object here = {.order = search->order++,
                               .path = info->dlpi_name ? info->dlpi_name : ""};
  elf_object_extent(info, &here.begin, &here.end);
  if (!tscope_is_within(&here, search->address))
    return 0;
  *search->hit = here;
  if (search->tables)
    *search->tables = elf_object_of(info);
  return 1;
}

bool tscope_object_of(const void *address, struct tscope_object *object) {
  struct object_search search = {.address = address, .hit = object};
  *object = (struct tscope_object){.path = ""};
  if (!address || !tscope_each_object(check_object, &search))
    return false;
  object->from_start = object->order < objects_from_start();
  return true;
}

bool tscope_tables_of(const void *address, struct elf_object *tables) {
  struct tscope_object object;
  struct object_search search = {.address = address, .hit = &object, .tables = tables};
  return tscope_each_object(check_object, &search);
}

bool tscope_is_own(const void *address) {
  static uintptr_t begin, end;
  uintptr_t known = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
  if (!known) {
    struct tscope_object own;
    if (!tscope_object_of(&begin, &own))
      return false;
    __atomic_store_n(&begin, own.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&end, known = own.end, __ATOMIC_RELEASE);
  }
  uintptr_t from = __atomic_load_n(&begin, __ATOMIC_RELAXED);
  return (uintptr_t)address - from < known - from;
}

struct name_search {
  struct elf_name name;
  const char *const *sonames;
  u32 order, from_start;
  bool own_seen;
  struct definers found;
  const char *soname; /* of the object, if it is not NULL */
  void *first;
};

static bool is_known(const struct name_search *search, const struct elf_object *object,
                     const char *path) {
  for (const char *const *soname = search->sonames; soname && *soname; soname++)
    if (elf_object_is_called(object, path, *soname))
      return true;
  return false;
}

static int add_definition(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct name_search *search = data;
  struct definers *found = &search->found;
  bool from_start = search->order++ < search->from_start;
  uintptr_t begin, end;
  (void)bytes;
  elf_object_extent(info, &begin, &end);
  if (tscope_is_own((const void *)begin)) {
    search->own_seen = true;
    return 0;
  }
  if (from_start && !search->own_seen)
    return 0;
  struct elf_object object = elf_object_of(info);
  void *address = elf_object_find(&object, &search->name);
  if (!address)
    return 0;
  if (from_start) {
    found->next = address;
    return 1;
  }
  found->loaded = found->n_loaded++ ? found->loaded : address;
  if (is_known(search, &object, info->dlpi_name))
    found->known = found->n_known++ ? found->known : address;
  return 0;
}

struct definers tscope_definers(const char *name, const char *const *sonames) {
  struct name_search search = {
      .name = elf_name(name), .sonames = sonames, .from_start = objects_from_start()};
  tscope_is_own(NULL); /* finds tscope's own place before the walk */
  tscope_each_object(add_definition, &search);
  return search.found;
}

static int take_first(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct name_search *search = data;
  (void)bytes;
  struct elf_object object = elf_object_of(info);
  if (search->soname && strcmp(object.soname, search->soname) != 0)
    return 0;
  search->first = elf_object_find(&object, &search->name);
  return search->first != NULL;
}

void *tscope_definition_in(const char *soname, const char *name) {
  struct name_search search = {.name = elf_name(name), .soname = soname};
  tscope_each_object(take_first, &search);
  return search.first;
}

void *tscope_definition_beside(const void *address, const char *name) {
  const struct elf_name wanted = elf_name(name);
  struct elf_object tables;
  return tscope_tables_of(address, &tables) ? elf_object_find(&tables, &wanted) : NULL;
}

void *tscope_first_definition(const char *name) {
  return tscope_definition_in(NULL, name);
}
