/* SPDX-License-Identifier: MIT
 *
 * The real function behind a hook.
 */
#include "resolve/resolve.h"

#include <dlfcn.h>

#include "resolve/real_dlsym.h"
#include "resolve/search.h"
#include "resolve/unloading.h"

/* From one loaded file and what it links; NULL if it is not loaded or has no such function. */
static void *find_in(const char *file, const char *name) {
  void *handle = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!handle)
    return NULL;
  void *address = tscope_dlsym(handle, name);
  dlclose(handle);
  return address && !tscope_is_own(address) ? address : NULL;
}

void *resolve_next(const char *name) {
  void *address = tscope_dlsym(RTLD_NEXT, name);
  return address && !tscope_is_own(address) ? address : NULL;
}

/* From the libraries that the object around `return_address` links, else from a loaded library of
 * the symbol's sonames. */
static void *from_libraries(const struct tscope_symbol *symbol, const void *return_address) {
  struct tscope_object caller;
  void *address =
      tscope_object_of(return_address, &caller) ? find_in(caller.path, symbol->name) : NULL;
  for (const char *const *soname = symbol->sonames; soname && *soname && !address; soname++)
    address = find_in(*soname, symbol->name);
  return address;
}

bool resolve_is_possible(void) {
  return dladdr && dlopen && dlclose;
}

void *resolve_by_linker(const struct tscope_symbol *symbol, const void *return_address,
                        bool *is_next) {
  *is_next = false;
  if (!resolve_is_possible())
    return NULL;
  TSCOPE_KEEP_ERRNO;
  void *address = resolve_next(symbol->name);
  *is_next = address != NULL;
  if (!address)
    address = from_libraries(symbol, return_address);
  if (dlerror)
    dlerror();
  return address;
}

void *tscope_resolve_slow(struct tscope_symbol *symbol, const void *return_address) {
  struct definers found = tscope_definers(symbol->name, symbol->sonames);
  void *address = found.next;
  if (!address && found.n_known == 1)
    address = found.known;
  else if (!address && found.n_loaded == 1 && return_address)
    address = found.loaded;
  else if (!address && found.n_loaded)
    address = resolve_by_linker(symbol, return_address, &(bool){false});
  if (address) {
    tscope_keep_loaded(address);
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  }
  return address;
}
