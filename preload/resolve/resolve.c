/* SPDX-License-Identifier: MIT
 *
 * The real function behind a hook.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>

#include "record/hook.h"
#include "resolve/loaded_objects.h"
#include "resolve/real_dlsym.h"
#include "resolve/resolve.h"

/* The object that contains an address; NULL if none does. */
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

void resolve_pin(const void *address) {
  const char *file;
  if (!object_of(address, &file) || !file)
    return;
  void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle)
    dlclose(handle);
}

void *resolve_in(const char *file, const char *name) {
  void *handle = file ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (!handle)
    return NULL;
  void *address = tscope_dlsym(handle, name);
  dlclose(handle);
  return address && !is_ours(address) ? address : NULL;
}

void *resolve_next(const char *name) {
  void *address = tscope_dlsym(RTLD_NEXT, name);
  return address && !is_ours(address) ? address : NULL;
}

void *resolve_from_libraries(const struct tscope_symbol *symbol, const void *return_address) {
  const char *caller = NULL;
  void *address = object_of(return_address, &caller) ? resolve_in(caller, symbol->name) : NULL;
  for (const char *const *soname = symbol->sonames; soname && *soname && !address; soname++)
    address = resolve_in(*soname, symbol->name);
  return address;
}

struct loaded {
  size_t index, seen;
  char path[512];
};

static int get_loaded_path(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct loaded *loaded = data;
  (void)bytes;
  if (loaded->seen++ != loaded->index)
    return 0;
  snprintf(loaded->path, sizeof(loaded->path), "%s", info->dlpi_name ? info->dlpi_name : "");
  return 1;
}

void *resolve_unique(const char *name) {
  void *found = NULL;
  struct loaded loaded = {0};
  for (; tscope_each_object(get_loaded_path, &loaded); loaded.index++, loaded.seen = 0) {
    void *address = loaded.path[0] ? resolve_in(loaded.path, name) : NULL;
    if (address && found && address != found)
      return NULL;
    found = address ? address : found;
  }
  return found;
}

bool resolve_is_possible(void) {
  return dladdr && dlopen && dlclose;
}

void *tscope_resolve_slow(struct tscope_symbol *symbol, const void *return_address) {
  if (!resolve_is_possible())
    return NULL;
  int saved = errno;
  void *address = resolve_next(symbol->name);
  if (!address)
    address = resolve_from_libraries(symbol, return_address);
  if (address) {
    resolve_pin(address);
    __atomic_store_n(&symbol->address, address, __ATOMIC_RELEASE);
  }
  if (dlerror)
    dlerror();
  errno = saved;
  return address;
}
