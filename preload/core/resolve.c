/* SPDX-License-Identifier: MIT
 *
 * The real function behind a hook.
 */
#include <dlfcn.h>
#include <errno.h>

#include "hook.h"
#include "real_dlsym.h"

/* The object that an address lies in; NULL if none. */
static const void *object_of(const void *address, const char **file) {
  Dl_info info;
  if (!address || !dladdr(address, &info))
    return NULL;
  if (file)
    *file = info.dli_fname;
  return info.dli_fbase;
}

static bool is_ours(const void *address) {
  return object_of(address, NULL) == object_of((const void *)&tscope_resolve_slow, NULL);
}

/* Never to be unloaded from here on: hooks keep the address. */
static void pin(const void *address) {
  const char *file;
  if (!object_of(address, &file) || !file)
    return;
  void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle)
    dlclose(handle);
}

static void *find_in(const char *file, const char *name) {
  void *handle = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!handle)
    return NULL;
  void *address = tscope_dlsym(handle, name);
  dlclose(handle);
  return address && !is_ours(address) ? address : NULL;
}

static void *find(const struct tscope_symbol *symbol, const void *return_address) {
  void *address = tscope_dlsym(RTLD_NEXT, symbol->name);
  if (address && !is_ours(address))
    return address;
  const char *caller = NULL;
  address = object_of(return_address, &caller) ? find_in(caller, symbol->name) : NULL;
  for (const char *const *soname = symbol->sonames; soname && *soname && !address; soname++)
    address = find_in(*soname, symbol->name);
  return address;
}

void *tscope_resolve_slow(struct tscope_symbol *symbol, const void *return_address) {
  if (!dladdr || !dlopen || !dlclose)
    return NULL;
  int saved = errno;
  void *address = find(symbol, return_address);
  if (address) {
    pin(address);
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  }
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}
