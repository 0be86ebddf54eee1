/* SPDX-License-Identifier: MIT
 *
 * Domains, and the strings that programs register in them. Both are made once and kept until the
 * process ends. They may be made before the process is awake, so they are in separate tables.
 */
#pragma once

#include "nvtx/nvtx_names.h"

struct nvtx_domain {
  bool ignored;
  u32 string; /* the string of its name; 0 until it is needed, and for the program's own domain */
  char name[64];
};

extern struct nvtx_domain nvtx_default_domain;

/* Never NULL: if the table is full, a domain whose ranges are not recorded. */
struct nvtx_domain *nvtx_domain_create(const char *name);

/* `domain` as a library passes it: NULL is the default domain. */
static inline struct nvtx_domain *nvtx_domain_of(void *domain) {
  return domain ? domain : &nvtx_default_domain;
}

u32 nvtx_domain_string(struct tscope_thread *thread, struct nvtx_domain *domain);

/* A handle for a name; never NULL. If the table is full, the handle of a fixed name that says
 * so. */
const void *nvtx_string_register(const char *name);
struct nvtx_text nvtx_string_of(const void *handle);
