/* SPDX-License-Identifier: MIT */
#include "resolve/library_instances.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>

#include "record/lock.h"
#include "resolve/loaded_objects.h"
#include "resolve/resolve.h"

enum { MAX_LIBRARIES = 8, MAX_COPIES = 4, MAX_BOUND = 2048, ROUTES = 1024 };

/* A loaded object of the process: its addresses, and its position in the order of loading. */
struct object {
  uintptr_t begin, end;
  u32 order;
  char path[256];
};

/* Entries are added under the lock and read without it: each is whole before it counts. */
struct library {
  const char *const *sonames;
  struct object copies[MAX_COPIES];
  u32 n;
  u32 found; /* 1 + index of the copy that look-ups lead to, 0: none yet */
};

/* What a symbol means to callers in one object, where it does not mean the same to all. */
struct route {
  const struct tscope_symbol *symbol; /* NULL: free; stored last */
  uintptr_t begin, end;
  void *address;
};

static struct library libraries[MAX_LIBRARIES];
static u32 n_libraries;
static struct tscope_symbol *bound[MAX_BOUND]; /* whose address is the same for all callers */
static u32 n_bound;
static struct route routes[ROUTES];

static struct tscope_lock copies_lock;

/* Without the lock nothing is found; the next call tries again. */
static bool lock(void) {
  return tscope_lock_within(&copies_lock, 100000000);
}

static void unlock(void) {
  tscope_unlock(&copies_lock);
}

static struct library *find_library(const struct tscope_symbol *symbol) {
  u32 n = __atomic_load_n(&n_libraries, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < n; i++)
    if (libraries[i].sonames == symbol->sonames)
      return &libraries[i];
  return NULL;
}

/* The lock is held. */
static struct library *get_library(const struct tscope_symbol *symbol) {
  struct library *library = find_library(symbol);
  if (library || n_libraries == MAX_LIBRARIES)
    return library;
  library = &libraries[n_libraries];
  library->sonames = symbol->sonames;
  __atomic_store_n(&n_libraries, n_libraries + 1, __ATOMIC_RELEASE);
  return library;
}

static bool is_within(const struct object *object, const void *address) {
  return (uintptr_t)address - object->begin < object->end - object->begin;
}

static struct object *find_copy(struct library *library, const void *address) {
  u32 n = library ? __atomic_load_n(&library->n, __ATOMIC_ACQUIRE) : 0;
  for (u32 i = 0; i < n; i++)
    if (is_within(&library->copies[i], address))
      return &library->copies[i];
  return NULL;
}

struct search {
  const void *address;
  struct object hit;
  u32 order;
};

static int check_object(struct dl_phdr_info *info, size_t bytes, void *data) {
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
  if (here.begin >= here.end || !is_within(&here, search->address))
    return 0;
  snprintf(here.path, sizeof(here.path), "%s", info->dlpi_name ? info->dlpi_name : "");
  search->hit = here;
  return 1;
}

/* The object that contains an address; false if none does. */
static bool find_object(const void *address, struct object *object) {
  struct search search = {.address = address};
  bool found = address && tscope_each_object(check_object, &search);
  *object = search.hit;
  return found;
}

/* If the library turns out to be loaded a second time, an address that was kept for all callers is
 * not right for all. The lock is held. */
static void clear_addresses(const struct library *library) {
  for (u32 i = 0; i < n_bound; i++)
    if (bound[i]->sonames == library->sonames)
      __atomic_store_n(&bound[i]->address, NULL, __ATOMIC_RELEASE);
}

/* Adds the copy in which one of the library's functions was found; NULL if there is no room. The
 * lock is held. */
static struct object *add_copy(struct library *library, const void *address) {
  struct object *known = find_copy(library, address);
  if (known || !library || library->n == MAX_COPIES ||
      !find_object(address, &library->copies[library->n]))
    return known;
  __atomic_store_n(&library->n, library->n + 1, __ATOMIC_RELEASE);
  if (library->n == 2)
    clear_addresses(library);
  return &library->copies[library->n - 1];
}

static struct route *first_route(const struct tscope_symbol *symbol) {
  return &routes[(uintptr_t)symbol / sizeof(*symbol) % ROUTES];
}

static struct route *next_route(struct route *route) {
  return route + 1 == routes + ROUTES ? routes : route + 1;
}

/* What was found for this caller before; NULL: nothing. */
static void *find_route(const struct tscope_symbol *symbol, const void *return_address) {
  struct route *first = first_route(symbol), *route = first;
  do {
    const struct tscope_symbol *of = __atomic_load_n(&route->symbol, __ATOMIC_ACQUIRE);
    if (!of)
      return NULL;
    if (of == symbol && (uintptr_t)return_address - route->begin < route->end - route->begin)
      return route->address;
    route = next_route(route);
  } while (route != first);
  return NULL;
}

/* The lock is held. */
static void add_route(const struct tscope_symbol *symbol, const struct object *caller,
                      void *address) {
  struct route *first = first_route(symbol), *route = first;
  while (route->symbol)
    if ((route = next_route(route)) == first)
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
static void *find_for_caller(const struct tscope_symbol *symbol, const struct object *caller,
                             void *next, const void *return_address) {
  struct object global, ours;
  bool later = next && !is_within(caller, next) && find_object(next, &global) &&
               caller->order < global.order && find_object(&n_libraries, &ours) &&
               caller->order > ours.order;
  void *own = later || !next ? resolve_in(caller->path, symbol->name) : NULL;
  if (own && (!next || is_within(caller, own)))
    return own;
  return next ? next : resolve_from_libraries(symbol, return_address);
}

/* Keeps the address: `for_all` callers, if the library is there once, else for those in the
 * caller's object. */
static void store_address(struct tscope_symbol *symbol, const struct object *caller, void *address,
                          bool for_all) {
  if (!lock())
    return;
  struct library *library = get_library(symbol);
  if (add_copy(library, address) && for_all && library->n == 1 && n_bound < MAX_BOUND) {
    bound[n_bound++] = symbol;
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  } else if (caller->end) {
    add_route(symbol, caller, address);
  }
  unlock();
}

/* Whether an address is in tscope itself, whose place is found once. */
static bool is_within_tscope(const void *address) {
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
  if (!is_within_tscope(return_address))
    return return_address;
  const struct tscope_thread *thread = tscope_self;
  return thread && thread->real ? thread->real : return_address;
}

static void *resolve(struct tscope_symbol *symbol, const void *return_address, bool is_query) {
  return_address = caller_of(return_address);
  void *address = find_route(symbol, return_address);
  if (address || !resolve_is_possible())
    return address;
  int saved = errno;
  struct object caller;
  void *next = resolve_next(symbol->name);
  if (find_object(return_address, &caller))
    address = find_for_caller(symbol, &caller, next, return_address);
  else
    address = next ? next : resolve_from_libraries(symbol, NULL);
  if (!address && !is_query) /* else the call fails, which it would not do without tscope */
    address = resolve_unique(symbol->name);
  if (address) {
    resolve_pin(address);
    store_address(symbol, &caller, address, address == next || is_query);
  }
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}

void *tscope_resolve_copy_slow(struct tscope_symbol *symbol, const void *return_address) {
  return resolve(symbol, return_address, false);
}

/* Before a call goes on to a second copy, that one is added: until then, all queries go to the
 * first. */
void *tscope_query_function_slow(struct tscope_symbol *symbol, const struct tscope_thread *thread) {
  if (!thread || thread->via == TSCOPE_VIA_LINKER)
    return resolve(symbol, thread ? thread->real : NULL, true);
  struct object *copy = find_copy(find_library(symbol), thread->real);
  if (!copy || !resolve_is_possible())
    return NULL;
  int saved = errno;
  void *address = resolve_in(copy->path, symbol->name);
  if (address && !is_within(copy, address))
    address = NULL;
  __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}

/* The lock is held. */
static bool bind(struct tscope_symbol *symbol, void *real, bool *first) {
  struct library *library = get_library(symbol);
  const struct object *copy = add_copy(library, real);
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
  if (!resolve_is_possible() || !lock())
    return false;
  int saved = errno;
  bool first = false, is_bound = bind(symbol, real, &first);
  unlock();
  if (first)
    resolve_pin(real);
  if (first && dlerror)
    dlerror();
  errno = saved;
  return is_bound;
}

const char *tscope_copy_path(const struct tscope_symbol *symbol, const void *address) {
  const struct object *copy = find_copy(find_library(symbol), address);
  return copy ? copy->path : NULL;
}
