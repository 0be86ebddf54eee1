/* SPDX-License-Identifier: MIT */
#include "copies.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>

#include "resolve.h"

enum { MOST_LIBRARIES = 8, MOST_COPIES = 4, MOST_BOUND = 2048, TRIES = 1000 };

/* Where a copy lies. Objects are compared by `order`, the place in which they were loaded. */
struct copy {
  uintptr_t begin, end;
  u32 order;
  char path[256];
};

/* Entries are added under the lock and read without it: each is whole before it counts. */
struct library {
  const char *const *sonames;
  struct copy copies[MOST_COPIES];
  u32 n;
  u32 found; /* 1 + index of the copy that look-ups lead to, 0: none yet */
};

static struct library libraries[MOST_LIBRARIES];
static u32 n_libraries;
static struct tscope_symbol *bound[MOST_BOUND]; /* whose address is kept, by the linker's way */
static u32 n_bound;

/* Never waited for without end: in a forked child nobody may be left to release it. */
static u32 locked;

static bool lock(void) {
  for (int i = 0; __atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE); i++) {
    if (i == TRIES)
      return false;
    sched_yield();
  }
  return true;
}

static void unlock(void) {
  __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

static struct library *library_of(const struct tscope_symbol *symbol) {
  u32 n = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < n; i++)
    if (libraries[i].sonames == symbol->sonames)
      return &libraries[i];
  return NULL;
}

/* The lock is held. */
static struct library *library_get(const struct tscope_symbol *symbol) {
  struct library *library = library_of(symbol);
  if (library || n_libraries == MOST_LIBRARIES)
    return library;
  library = &libraries[n_libraries];
  library->sonames = symbol->sonames;
  __atomic_store_n(&n_libraries, n_libraries + 1, __ATOMIC_RELEASE);
  return library;
}

static bool lies_in(const struct copy *copy, const void *address) {
  return (uintptr_t)address - copy->begin < copy->end - copy->begin;
}

static struct copy *copy_of(struct library *library, const void *address) {
  u32 n = library ? __atomic_load_n(&library->n, __ATOMIC_ACQUIRE) : 0;
  for (u32 i = 0; i < n; i++)
    if (lies_in(&library->copies[i], address))
      return &library->copies[i];
  return NULL;
}

static bool several(struct library *library) {
  return library && __atomic_load_n(&library->n, __ATOMIC_ACQUIRE) > 1;
}

struct search {
  const void *address;
  struct library *library;
  struct copy hit;
  u32 order;
};

/* Looks at one object of the process, in the order of loading. */
static int look_at(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  struct search *search = data;
  struct copy here = {.begin = UINTPTR_MAX, .order = search->order++};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD)
      continue;
    uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    here.begin = begin < here.begin ? begin : here.begin;
    here.end = end > here.end ? end : here.end;
  }
  for (u32 i = 0; i < search->library->n; i++)
    if (search->library->copies[i].begin == here.begin)
      __atomic_store_n(&search->library->copies[i].order, here.order, __ATOMIC_RELAXED);
  if (here.begin < here.end && lies_in(&here, search->address)) {
    snprintf(here.path, sizeof here.path, "%s", info->dlpi_name ? info->dlpi_name : "");
    search->hit = here;
  }
  return 0;
}

/* Where the library turns out to be there a second time, what was kept of it holds no longer for
 * every caller. The lock is held. */
static void forget_addresses(const struct library *library) {
  for (u32 i = 0; i < n_bound; i++)
    if (bound[i]->sonames == library->sonames)
      __atomic_store_n(&bound[i]->address, NULL, __ATOMIC_RELEASE);
}

/* Notes the copy in which one of the library's functions was found; NULL if there is no room. The
 * lock is held. */
static struct copy *note(struct library *library, const void *address) {
  struct copy *known = copy_of(library, address);
  if (known || !library || library->n == MOST_COPIES)
    return known;
  struct search search = {.address = address, .library = library};
  dl_iterate_phdr(look_at, &search);
  if (!search.hit.end)
    return NULL;
  library->copies[library->n] = search.hit;
  __atomic_store_n(&library->n, library->n + 1, __ATOMIC_RELEASE);
  if (library->n == 2)
    forget_addresses(library);
  return &library->copies[library->n - 1];
}

/* The linker binds to what is first in the global search order, as it is when the caller's object
 * is loaded; a copy that was there before a global one, and out of that order, has its own. */
static void *among_copies(struct library *library, struct tscope_symbol *symbol,
                          const void *return_address) {
  void *next = __atomic_load_n(&symbol->next, __ATOMIC_RELAXED);
  if (!next) {
    next = resolve_next(symbol->name);
    __atomic_store_n(&symbol->next, next, __ATOMIC_RELAXED);
  }
  struct copy *own = copy_of(library, return_address);
  struct copy *global = next ? copy_of(library, next) : NULL;
  bool by_itself = own && own != global && (!next || (global && own->order < global->order));
  void *address = by_itself ? resolve_in(own->path, symbol->name) : NULL;
  if (address && lies_in(own, address))
    return address;
  return next ? next : resolve_beside(symbol, return_address);
}

/* Keeps the address for every caller, if it is the same for every caller. */
static void keep(struct tscope_symbol *symbol, void *address) {
  if (!lock())
    return;
  struct library *library = library_get(symbol);
  if (note(library, address) && !several(library) && n_bound < MOST_BOUND) {
    if (!symbol->address)
      bound[n_bound++] = symbol;
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  }
  unlock();
}

void *tscope_resolve_copy_slow(struct tscope_symbol *symbol, const void *return_address) {
  if (!resolve_can())
    return NULL;
  int saved = errno;
  struct library *library = library_of(symbol);
  void *address;
  if (several(library)) {
    address = among_copies(library, symbol, return_address);
  } else {
    address = resolve_next(symbol->name);
    if (!address)
      address = resolve_beside(symbol, return_address);
    if (address) {
      resolve_pin(address);
      keep(symbol, address);
    }
  }
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}

void *tscope_ask_slow(struct tscope_symbol *symbol, const struct tscope_thread *thread) {
  if (!thread || thread->way == TSCOPE_LINKED)
    return tscope_resolve_copy_slow(symbol, thread ? thread->real : NULL);
  struct copy *copy = copy_of(library_of(symbol), thread->real);
  if (!copy || !resolve_can())
    return NULL;
  int saved = errno;
  void *address = resolve_in(copy->path, symbol->name);
  if (address && !lies_in(copy, address))
    address = NULL;
  __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}

/* The lock is held. */
static bool bind(struct tscope_symbol *symbol, void *real, bool *first) {
  struct library *library = library_get(symbol);
  const struct copy *copy = note(library, real);
  if (!copy)
    return false;
  u32 which = 1 + (u32)(copy - library->copies);
  *first = !library->found;
  if (*first)
    library->found = which;
  if (library->found != which)
    return false;
  if (!symbol->address)
    __atomic_store_n(&symbol->address, real, __ATOMIC_RELEASE);
  return symbol->address == real;
}

bool tscope_copy_bind(struct tscope_symbol *symbol, void *real) {
  if (__atomic_load_n(&symbol->address, __ATOMIC_ACQUIRE) == real)
    return true;
  if (!resolve_can() || !lock())
    return false;
  int saved = errno;
  bool first = false, given = bind(symbol, real, &first);
  unlock();
  if (first)
    resolve_pin(real);
  if (first && dlerror)
    dlerror();
  errno = saved;
  return given;
}

const char *tscope_copy_path(const struct tscope_symbol *symbol, const void *address) {
  const struct copy *copy = copy_of(library_of(symbol), address);
  return copy ? copy->path : NULL;
}
