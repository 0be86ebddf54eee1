/* SPDX-License-Identifier: MIT
 *
 * Decides whether tscope is NCCL's profiler plugin. NCCL takes the library that
 * NCCL_PROFILER_PLUGIN names; if it names none, libnccl-profiler.so if it exists, else its network
 * plugin if that is a profiler too. Only if none of these exists, and the user asked for it, does
 * NCCL learn about tscope.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "record/hook.h"
#include "resolve/real_dlsym.h"
#include "settings/process_environment.h"

static bool is_wanted(void) {
  return tscope_environment_now_is("TSCOPE_NCCL_PROFILER", "choices") ||
         tscope_environment_now_is("TSCOPE_NCCL_PROFILER", "times");
}

/* In the same way as NCCL would load it, or where NCCL already loaded it. */
static bool is_profiler(const char *library, int mode) {
  void *handle = dlopen && dlclose ? dlopen(library, RTLD_LAZY | mode) : NULL;
  bool found = false;
  for (char version = '1'; handle && version <= '9' && !found; version++) {
    char name[] = "ncclProfiler_v0";
    name[sizeof(name) - 2] = version;
    found = tscope_dlsym(handle, name) != NULL;
  }
  if (handle)
    dlclose(handle);
  return found;
}

static bool net_plugin_is_profiler(void) {
  const char *plugin = tscope_environment_now("NCCL_NET_PLUGIN");
  char name[256];
  snprintf(name, sizeof(name), "libnccl-net-%s.so", plugin ? plugin : "");
  return is_profiler("libnccl-net.so", RTLD_NOLOAD) ||
         (plugin && (is_profiler(plugin, RTLD_NOLOAD) || is_profiler(name, RTLD_NOLOAD)));
}

const char *nccl_profiler_injection(const void *caller);
__attribute__((visibility("hidden"))) const char *nccl_profiler_injection(const void *caller) {
  (void)caller;
  if (!is_wanted() || is_profiler("libnccl-profiler.so", 0) || net_plugin_is_profiler())
    return NULL;
  return "STATIC_PLUGIN";
}
