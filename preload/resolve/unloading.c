/* SPDX-License-Identifier: MIT */
#include "resolve/unloading.h"

#include <dlfcn.h>

#include "record/lock.h"
#include "resolve/real_dlsym.h"
#include "resolve/search.h"

enum { MOST = 256 };

static struct kept {
  const void *begin; /* of an object */
  bool is_pinned;
} kept[MOST];
static u32 n_kept;
static struct tscope_lock lock;
static u64 unloads;
static __thread bool pinning __attribute__((tls_model("initial-exec")));

static void pin(const void *address) {
  Dl_info info;
  if (!dladdr || !dlopen || !dlclose || !dladdr(address, &info) || !info.dli_fname)
    return;
  void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle)
    dlclose(handle);
  if (dlerror)
    dlerror();
}

/* False if there is no room. */
static bool add(const void *begin) {
  if (!tscope_lock_within(&lock, 100000000))
    return false;
  u32 i = 0;
  while (i < n_kept && kept[i].begin != begin)
    i++;
  if (i == n_kept && i < MOST) {
    kept[i].begin = begin;
    __atomic_store_n(&n_kept, i + 1, __ATOMIC_RELEASE);
  }
  tscope_unlock(&lock);
  return i < MOST;
}

void tscope_keep_loaded(const void *address) {
  struct tscope_object object;
  if (tscope_object_of(address, &object) && !object.from_start && !add((const void *)object.begin))
    pin(address);
}

/* Two threads may both pin an object: neither unloads before it is pinned. */
static void pin_all(void) {
  u32 n = __atomic_load_n(&n_kept, __ATOMIC_ACQUIRE);
  TSCOPE_KEEP_ERRNO;
  pinning = true;
  for (u32 i = 0; i < n; i++) {
    if (__atomic_load_n(&kept[i].is_pinned, __ATOMIC_ACQUIRE))
      continue;
    pin(kept[i].begin);
    __atomic_store_n(&kept[i].is_pinned, true, __ATOMIC_RELEASE);
  }
  pinning = false;
}

u64 tscope_unloads(void) {
  return __atomic_load_n(&unloads, __ATOMIC_RELAXED);
}

int tscope_hook_dlclose(void *handle) {
  static int (*real)(void *);
  if (!pinning)
    pin_all();
  int (*found)(void *) = __atomic_load_n(&real, __ATOMIC_RELAXED);
  if (!found) {
    found = (int (*)(void *))tscope_dlsym(RTLD_NEXT, "dlclose");
    __atomic_store_n(&real, found, __ATOMIC_RELAXED);
  }
  /* Before: others may load something there as soon as it is gone. After: its destructors are
   * callers, too. */
  __atomic_add_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
  int result = found ? found(handle) : -1;
  __atomic_add_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
  return result;
}
