/* SPDX-License-Identifier: MIT */
#include "resolve/library_instances.h"

#include <dlfcn.h>
#include <string.h>

#include "record/fnv.h"
#include "record/lock.h"
#include "resolve/resolve.h"
#include "resolve/search.h"
#include "resolve/unloading.h"

enum { MAX_LIBRARIES = 8, MAX_COPIES = 4, MAX_BOUND = 2048, ROUTES = 1024, MAX_UNSETTLED = 1024 };

/* Entries are added under the lock and read without it: each is whole before it counts. */
struct library {
  const char *const *sonames;
  struct tscope_object copies[MAX_COPIES];
  u32 n;
  u32 found; /* 1 + index of the copy that look-ups lead to, 0: none yet */
};

/* What a symbol means to callers in one object, where it does not mean the same to all. */
struct route {
  const struct tscope_symbol *symbol; /* NULL: free; stored last */
  uintptr_t begin, end;
  void *address;
  u64 path;    /* of the object: a hash */
  u64 unloads; /* when it was last known that this object is still there */
};

static struct library libraries[MAX_LIBRARIES];
static u32 n_libraries;
static struct tscope_symbol *bound[MAX_BOUND]; /* whose address is the same for all callers */
static u32 n_bound;
static struct route routes[ROUTES];

/* Functions with a route, of which the poller has not yet asked the linker. */
static struct {
  struct tscope_symbol *symbol;
  void *address;
} unsettled[MAX_UNSETTLED];
static u32 n_unsettled, n_settled;

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

static struct tscope_object *find_copy(struct library *library, const void *address) {
  u32 n = library ? __atomic_load_n(&library->n, __ATOMIC_ACQUIRE) : 0;
  for (u32 i = 0; i < n; i++)
    if (tscope_is_within(&library->copies[i], address))
      return &library->copies[i];
  return NULL;
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
static struct tscope_object *add_copy(struct library *library, const void *address) {
  struct tscope_object *known = find_copy(library, address);
  if (known || !library || library->n == MAX_COPIES ||
      !tscope_object_of(address, &library->copies[library->n]))
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

/* What was found before for a caller at this address; NULL: nothing. */
static struct route *find_route(const struct tscope_symbol *symbol, const void *return_address) {
  struct route *first = first_route(symbol), *route = first;
  do {
    const struct tscope_symbol *of = __atomic_load_n(&route->symbol, __ATOMIC_ACQUIRE);
    if (!of)
      return NULL;
    if (of == symbol && (uintptr_t)return_address - route->begin < route->end - route->begin)
      return route;
    route = next_route(route);
  } while (route != first);
  return NULL;
}

static u64 path_of(const struct tscope_object *object) {
  return tscope_fnv(TSCOPE_FNV_SEED, object->path, strlen(object->path));
}

/* After something was unloaded, another object may be where the route's was: then the route is
 * given up. */
static bool is_route_of(struct route *route, const struct tscope_object *caller, u64 unloads) {
  static const struct tscope_symbol gone;
  bool same =
      caller->begin == route->begin && caller->end == route->end && path_of(caller) == route->path;
  if (same)
    __atomic_store_n(&route->unloads, unloads, __ATOMIC_RELAXED);
  else
    __atomic_store_n(&route->symbol, &gone, __ATOMIC_RELEASE);
  return same;
}

/* The lock is held. */
static void add_route(const struct tscope_symbol *symbol, const struct tscope_object *caller,
                      void *address, u64 unloads) {
  struct route *first = first_route(symbol), *route = first;
  while (route->symbol)
    if ((route = next_route(route)) == first)
      return;
  route->begin = caller->begin;
  route->end = caller->end;
  route->address = address;
  route->path = path_of(caller);
  __atomic_store_n(&route->unloads, unloads, __ATOMIC_RELAXED);
  __atomic_store_n(&route->symbol, symbol, __ATOMIC_RELEASE);
}

/* The linker binds to what is first in the global search order, as that is when the caller's object
 * is loaded: a copy that was there before the global one, and is not part of the order, has its
 * own. An object before tscope is part of it: what it calls by its own name never comes here, and
 * what comes here it has looked up behind itself (RTLD_NEXT). */
static void *before_global(const struct tscope_symbol *symbol, const struct tscope_object *caller,
                           const void *next, const void *return_address) {
  struct tscope_object global, ours;
  bool before = !tscope_is_within(caller, next) && tscope_object_of(next, &global) &&
                caller->order < global.order && tscope_object_of(&n_libraries, &ours) &&
                caller->order > ours.order;
  return before ? tscope_definition_beside(return_address, symbol->name) : NULL;
}

/* The global one, unless this caller has its own. */
static void *own_or_global(const struct tscope_symbol *symbol, const struct tscope_object *caller,
                           void *global, const void *return_address, bool *for_all) {
  void *own = before_global(symbol, caller, global, return_address);
  *for_all |= !own;
  return own ? own : global;
}

/* Several libraries that were loaded later define it: the only case in which a call waits for the
 * linker. */
static void *ask_linker(const struct tscope_symbol *symbol, const struct tscope_object *caller,
                        const void *return_address, bool *for_all) {
  bool is_global;
  void *found = resolve_by_linker(symbol, return_address, &is_global);
  return is_global ? own_or_global(symbol, caller, found, return_address, for_all) : found;
}

/* Keeps the address: `for_all` callers, if the library is there once, else for those in the
 * caller's object. */
static void store_address(struct tscope_symbol *symbol, const struct tscope_object *caller,
                          void *address, bool for_all, u64 unloads) {
  if (!lock())
    return;
  struct library *library = get_library(symbol);
  if (add_copy(library, address) && for_all && library->n == 1 && n_bound < MAX_BOUND) {
    bound[n_bound++] = symbol;
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  } else if (caller->end) {
    add_route(symbol, caller, address, unloads);
    if (n_unsettled < MAX_UNSETTLED) {
      unsettled[n_unsettled].symbol = symbol;
      unsettled[n_unsettled].address = address;
      __atomic_store_n(&n_unsettled, n_unsettled + 1, __ATOMIC_RELEASE);
    }
  }
  unlock();
}

void tscope_copies_settle(void) {
  static const struct tscope_object any_caller;
  u32 n = __atomic_load_n(&n_unsettled, __ATOMIC_ACQUIRE);
  for (; n_settled < n && resolve_is_possible(); n_settled++) {
    struct tscope_symbol *symbol = unsettled[n_settled].symbol;
    void *address = unsettled[n_settled].address;
    if (!symbol->address && resolve_next(symbol->name) == address)
      store_address(symbol, &any_caller, address, true, 0);
    dlerror();
  }
}

/* A function that ends in a call of another one jumps there and leaves its own return address,
 * which is a wrapper's of ours (ncclBcast() on aarch64): the caller is then in the copy that the
 * wrapper went on to. */
static const void *caller_of(const void *return_address) {
  if (!tscope_is_own(return_address))
    return return_address;
  const struct tscope_thread *thread = tscope_self;
  return thread && thread->real ? thread->real : return_address;
}

/* What a look-up for this caller finds; sets whether all callers get the same. */
static void *find_for_caller(const struct tscope_symbol *symbol, const struct tscope_object *caller,
                             const void *return_address, bool is_query, bool *for_all) {
  struct definers found = tscope_definers(symbol->name, symbol->sonames);
  void *own;
  *for_all = is_query;
  if (found.next)
    return own_or_global(symbol, caller, found.next, return_address, for_all);
  if (is_query && caller->end && (own = tscope_definition_beside(return_address, symbol->name)))
    return own;
  if (found.n_loaded == 1 && (!is_query || found.n_known))
    return found.loaded;
  return found.n_loaded ? ask_linker(symbol, caller, return_address, for_all) : NULL;
}

static void *resolve(struct tscope_symbol *symbol, const void *return_address, bool is_query) {
  return_address = caller_of(return_address);
  u64 unloads = tscope_unloads();
  struct route *route = find_route(symbol, return_address);
  if (TSCOPE_LIKELY(route && __atomic_load_n(&route->unloads, __ATOMIC_RELAXED) == unloads))
    return route->address;
  struct tscope_object caller;
  bool for_all;
  tscope_object_of(return_address, &caller);
  if (route && is_route_of(route, &caller, unloads))
    return route->address;
  void *address = find_for_caller(symbol, &caller, return_address, is_query, &for_all);
  if (address) {
    tscope_keep_loaded(address);
    store_address(symbol, &caller, address, for_all, unloads);
  }
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
  struct tscope_object *copy = find_copy(find_library(symbol), thread->real);
  void *address = copy ? tscope_definition_beside(thread->real, symbol->name) : NULL;
  __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  return address;
}

/* The lock is held. */
static bool bind(struct tscope_symbol *symbol, void *real, bool *first) {
  struct library *library = get_library(symbol);
  const struct tscope_object *copy = add_copy(library, real);
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
  if (!lock())
    return false;
  bool first = false, is_bound = bind(symbol, real, &first);
  unlock();
  if (first)
    tscope_keep_loaded(real);
  return is_bound;
}

const char *tscope_copy_path(const struct tscope_symbol *symbol, const void *address) {
  const struct tscope_object *copy = find_copy(find_library(symbol), address);
  return copy ? copy->path : NULL;
}
