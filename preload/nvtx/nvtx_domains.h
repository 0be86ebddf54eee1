/* SPDX-License-Identifier: MIT
 *
 * Domains, and the strings that programs register in them. Both are made once and kept for good,
 * and may be made before the process is awake: they lie in tables of their own.
 */
#ifndef TSCOPE_NVTX_DOMAINS_H
#define TSCOPE_NVTX_DOMAINS_H

#include "nvtx/nvtx_names.h"

struct nvtx_domain {
  bool left_alone;
  u32 string; /* of its name; 0 until it is needed, and for the program's own domain */
  char name[64];
};

extern struct nvtx_domain nvtx_default_domain;

/* Never NULL: beyond the table, a domain without recording. */
struct nvtx_domain *nvtx_domain_create(const char *name);

/* `domain` as a library passes it: NULL is the default domain. */
static inline struct nvtx_domain *nvtx_domain_of(void *domain) {
  return domain ? domain : &nvtx_default_domain;
}

u32 nvtx_domain_string(struct tscope_thread *thread, struct nvtx_domain *domain);

/* A handle for a name; never NULL. Beyond the table, that of a name that says so. */
const void *nvtx_string_register(const char *name);
struct nvtx_text nvtx_string_of(const void *handle);

#endif
