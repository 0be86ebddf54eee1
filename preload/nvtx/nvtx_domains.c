/* SPDX-License-Identifier: MIT */
#include "nvtx/nvtx_domains.h"

#include <stdio.h>
#include <string.h>

#include "nvtx/nvtx_names.def"
#include "record/atomics.h"

enum { DOMAINS = 256, REGISTERED_BYTES = 1 << 19 };

struct nvtx_domain nvtx_default_domain;

static struct nvtx_domain domains[DOMAINS];
static u32 n_domains;

static bool is_ignored(const char *name) {
#define D(domain)                                                                                  \
  if (strcmp(name, domain) == 0)                                                                   \
    return true;
  TSCOPE_NVTX_DOMAINS_LEFT_ALONE(D)
#undef D
  return false;
}

/* Domains beyond the table are one, and those left alone another. */
struct nvtx_domain *nvtx_domain_create(const char *name) {
  static struct nvtx_domain others = {.name = "(beyond the table of domains)"};
  static struct nvtx_domain others_ignored = {.ignored = true};
  u32 place;
  if (!tscope_atomic_take(&n_domains, 1, DOMAINS, &place))
    return name && is_ignored(name) ? &others_ignored : &others;
  struct nvtx_domain *domain = &domains[place];
  snprintf(domain->name, sizeof(domain->name), "%s", name ? name : "");
  domain->ignored = is_ignored(domain->name);
  return domain;
}

u32 nvtx_domain_string(struct tscope_thread *thread, struct nvtx_domain *domain) {
  u32 string = __atomic_load_n(&domain->string, __ATOMIC_RELAXED);
  if (TSCOPE_UNLIKELY(!string && domain->name[0])) {
    string = tscope_string(thread, domain->name);
    __atomic_store_n(&domain->string, string, __ATOMIC_RELAXED);
  }
  return string;
}

struct registered {
  u32 number;
  u32 bytes;
  char text[];
};

const void *nvtx_string_register(const char *name) {
  static const char overflow_text[] = "(beyond the table of registered strings)";
  static struct {
    struct registered head;
    char text[sizeof(overflow_text)];
  } overflow = {{TSCOPE_UNKNOWN, sizeof(overflow_text) - 1},
                "(beyond the table of registered strings)"};
  static _Alignas(8) char memory[REGISTERED_BYTES];
  static u32 used;
  struct nvtx_text text = nvtx_text_of(name ? name : "");
  u32 bytes = (u32)(sizeof(struct registered) + text.bytes + 7) & ~7u;
  u32 place;
  if (!tscope_atomic_take(&used, bytes, REGISTERED_BYTES, &place))
    return &overflow;
  struct registered *registered = (void *)&memory[place];
  registered->number = text.number;
  registered->bytes = text.bytes;
  memcpy(registered->text, text.text, text.bytes);
  return registered;
}

struct nvtx_text nvtx_string_of(const void *handle) {
  const struct registered *registered = handle;
  return (struct nvtx_text){
      .text = registered->text, .bytes = registered->bytes, .number = registered->number};
}
