/* SPDX-License-Identifier: MIT
 *
 * Durations of kernels. A program sets them with the functions in standin.h.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "standin.h"

struct kernel_duration {
  struct kernel_duration *next;
  char *name;
  int64_t ns;
};

static struct kernel_duration *durations;
static __thread int64_t next_ns = -1;

SIM_API void standin_next_kernel_ns(int64_t ns) {
  next_ns = ns;
}

SIM_API void standin_kernel_ns(const char *name, int64_t ns) {
  struct kernel_duration *entry = malloc(sizeof(*entry));
  if (!entry)
    return;
  *entry = (struct kernel_duration){.name = strdup(name), .ns = ns};
  sim_lock();
  entry->next = durations;
  durations = entry;
  sim_unlock();
}

/* "_Z7forwardPf" matches "forward": in a mangled name, its length comes before the name. */
static bool is_named(const char *mangled, const char *name) {
  if (!strcmp(mangled, name))
    return true;
  char *end;
  if (strncmp(mangled, "_Z", 2))
    return false;
  unsigned long length = strtoul(mangled + 2, &end, 10);
  return length == strlen(name) && !strncmp(end, name, length);
}

int64_t sim_kernel_duration(const char *mangled) {
  int64_t ns = next_ns;
  next_ns = -1;
  if (ns >= 0)
    return ns;
  sim_lock();
  ns = sim_settings.kernel_ns;
  for (const struct kernel_duration *entry = durations; entry; entry = entry->next)
    if (is_named(mangled, entry->name)) {
      ns = entry->ns;
      break;
    }
  sim_unlock();
  return ns;
}
