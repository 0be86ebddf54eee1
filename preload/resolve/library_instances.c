/* SPDX-License-Identifier: MIT */
#include "resolve/library_instances.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>

#include "record/lock.h"
#include "resolve/loaded_objects.h"
#include "resolve/resolve.h"

enum { MOST_LIBRARIES = 8, MOST_COPIES = 4, MOST_BOUND = 2048, ROUTES = 1024 };

/* An object of the process: where it lies, and in which place it was loaded. */
struct object {
  uintptr_t begin, end;
  u32 order;
  char path[256];
};

/* Entries are added under the lock and read without it: each is whole before it counts. */
struct library {
  const char *const *sonames;
  struct object copies[MOST_COPIES];
  u32 n;
  u32 found; /* 1 + index of the copy that look-ups lead to, 0: none yet */
};

/* What a symbol means to callers in one object, where it does not mean the same to all. */
struct route {
  const struct tscope_symbol *symbol; /* NULL: free; stored last */
  uintptr_t begin, end;
  void *address;
};

static struct library libraries[MOST_LIBRARIES];
static u32 n_libraries;
static struct tscope_symbol *bound[MOST_BOUND]; /* whose address is the same for all callers */
static u32 n_bound;
static struct route routes[ROUTES];

static struct tscope_lock copies_lock;

/* What is not found for want of the lock is looked for again. */
static bool lock(void) {
  return tscope_lock_within(&copies_lock, 100000000);
}

static void unlock(void) {
  tscope_unlock(&copies_lock);
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

static bool lies_in(const struct object *object, const void *address) {
  return (uintptr_t)address - object->begin < object->end - object->begin;
}

static struct object *copy_of(struct library *library, const void *address) {
  u32 n = library ? __atomic_load_n(&library->n, __ATOMIC_ACQUIRE) : 0;
  for (u32 i = 0; i < n; i++)
    if (lies_in(&library->copies[i], address))
      return &library->copies[i];
  return NULL;
}

struct search {
  const void *address;
  struct object hit;
  u32 order;
};

static int look_at(struct dl_phdr_info *info, size_t bytes, void *data) {
  (void)bytes;
  struct search *search = data;
  struct object here = {.begin = UINTPTR_MAX, .order = search->order++};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD)
      continue;
    uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
    here.begin = begin < here.begin ? begin : here.begin;
    here.end = end > here.end ? end : here.end;
  }
  if (here.begin >= here.end || !lies_in(&here, search->address))
    return 0;
  snprintf(here.path, sizeof(here.path), "%s", info->dlpi_name ? info->dlpi_name : "");
  search->hit = here;
  return 1;
}

/* The object that an address lies in; false if in none. */
static bool find_object(const void *address, struct object *object) {
  struct search search = {.address = address};
  bool found = address && tscope_each_object(look_at, &search);
  *object = search.hit;
  return found;
}

/* Where the library turns out to be there a second time, an address that was kept for all callers
 * is not that of all. The lock is held. */
static void forget_addresses(const struct library *library) {
  for (u32 i = 0; i < n_bound; i++)
    if (bound[i]->sonames == library->sonames)
      __atomic_store_n(&bound[i]->address, NULL, __ATOMIC_RELEASE);
}

/* Notes the copy in which one of the library's functions was found; NULL if there is no room. The
 * lock is held. */
static struct object *note(struct library *library, const void *address) {
  struct object *known = copy_of(library, address);
  if (known || !library || library->n == MOST_COPIES ||
      !find_object(address, &library->copies[library->n]))
    return known;
  __atomic_store_n(&library->n, library->n + 1, __ATOMIC_RELEASE);
  if (library->n == 2)
    forget_addresses(library);
  return &library->copies[library->n - 1];
}

static struct route *first_route(const struct tscope_symbol *symbol) {
  return &routes[(uintptr_t)symbol / sizeof(*symbol) % ROUTES];
}

static struct route *after(struct route *route) {
  return route + 1 == routes + ROUTES ? routes : route + 1;
}

/* What was found for this caller before; NULL: nothing. */
static void *routed(const struct tscope_symbol *symbol, const void *return_address) {
  struct route *first = first_route(symbol), *route = first;
  do {
    const struct tscope_symbol *of = __atomic_load_n(&route->symbol, __ATOMIC_ACQUIRE);
    if (!of)
      return NULL;
    if (of == symbol && (uintptr_t)return_address - route->begin < route->end - route->begin)
      return route->address;
    route = after(route);
  } while (route != first);
  return NULL;
}

/* The lock is held. */
static void add_route(const struct tscope_symbol *symbol, const struct object *caller,
                      void *address) {
  struct route *first = first_route(symbol), *route = first;
  while (route->symbol)
    if ((route = after(route)) == first)
      return;
  route->begin = caller->begin;
  route->end = caller->end;
  route->address = address;
  __atomic_store_n(&route->symbol, symbol, __ATOMIC_RELEASE);
}

/* The linker binds to what is first in the global search order, as that is when the caller's object
 * is loaded: a copy that was there before the global one, and is not part of the order, has its
 * own. An object before tscope is part of it: what it calls by its own name never comes here, and
 * what comes here it has looked up behind itself (RTLD_NEXT). */
static void *find_for(const struct tscope_symbol *symbol, const struct object *caller, void *next,
                      const void *return_address) {
  struct object global, ours;
  bool later = next && !lies_in(caller, next) && find_object(next, &global) &&
               caller->order < global.order && find_object(&n_libraries, &ours) &&
               caller->order > ours.order;
  void *own = later || !next ? resolve_in(caller->path, symbol->name) : NULL;
  if (own && (!next || lies_in(caller, own)))
    return own;
  return next ? next : resolve_beside(symbol, return_address);
}

/* Keeps the address: `for_all` callers, if the library is there once, else for those in the
 * caller's object. */
static void remember(struct tscope_symbol *symbol, const struct object *caller, void *address,
                     bool for_all) {
  if (!lock())
    return;
  struct library *library = library_get(symbol);
  if (note(library, address) && for_all && library->n == 1 && n_bound < MOST_BOUND) {
    bound[n_bound++] = symbol;
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  } else if (caller->end) {
    add_route(symbol, caller, address);
  }
  unlock();
}

/* Where tscope itself lies; found once. */
static bool lies_in_ours(const void *address) {
  static uintptr_t begin, end;
  uintptr_t known = __atomic_load_n(&end, __ATOMIC_ACQUIRE);
  if (!known) {
    struct object ours;
    if (!find_object(&n_libraries, &ours))
      return false;
    __atomic_store_n(&begin, ours.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&end, known = ours.end, __ATOMIC_RELEASE);
  }
  uintptr_t from = __atomic_load_n(&begin, __ATOMIC_RELAXED);
  return (uintptr_t)address - from < known - from;
}

/* A function that ends in a call of another one jumps there and leaves its own return address,
 * which is a wrapper's of ours (ncclBcast() on aarch64): the caller is then in the copy that the
 * wrapper went on to. */
static const void *caller_of(const void *return_address) {
  if (!lies_in_ours(return_address))
    return return_address;
  const struct tscope_thread *thread = tscope_self;
  return thread && thread->real ? thread->real : return_address;
}

static void *resolve(struct tscope_symbol *symbol, const void *return_address, bool is_query) {
  return_address = caller_of(return_address);
  void *address = routed(symbol, return_address);
  if (address || !resolve_can())
    return address;
  int saved = errno;
  struct object caller;
  void *next = resolve_next(symbol->name);
  if (find_object(return_address, &caller))
    address = find_for(symbol, &caller, next, return_address);
  else
    address = next ? next : resolve_beside(symbol, NULL);
  if (!address && !is_query) /* else the call fails, which it would not do without tscope */
    address = resolve_alone(symbol->name);
  if (address) {
    resolve_pin(address);
    remember(symbol, &caller, address, address == next || is_query);
  }
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}

void *tscope_resolve_copy_slow(struct tscope_symbol *symbol, const void *return_address) {
  return resolve(symbol, return_address, false);
}

/* Before a call goes on to a second copy, that one is noted: until then, all questions go to the
 * first. */
void *tscope_query_function_slow(struct tscope_symbol *symbol, const struct tscope_thread *thread) {
  if (!thread || thread->via == TSCOPE_VIA_LINKER)
    return resolve(symbol, thread ? thread->real : NULL, true);
  struct object *copy = copy_of(library_of(symbol), thread->real);
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
  const struct object *copy = note(library, real);
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
  const struct object *copy = copy_of(library_of(symbol), address);
  return copy ? copy->path : NULL;
}
