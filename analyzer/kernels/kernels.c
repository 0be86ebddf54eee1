/* SPDX-License-Identifier: MIT */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "kernels/kernel_text.h"
#include "kernels/patterns.h"

struct kernel_names {
  struct kernel_patterns *patterns;
  pthread_mutex_t lock; /* over all that follows */
  struct arena arena;
  VECTOR(struct kernel *) list;
  struct hash_index index;
};

struct kernel_names *kernel_names_new(const char *file, char *why, size_t why_bytes) {
  struct kernel_names *names = memory_zeroed(1, sizeof(*names));
  pthread_mutex_init(&names->lock, NULL);
  names->patterns = kernel_patterns_new(file, why, why_bytes);
  if (!names->patterns) {
    kernel_names_free(names);
    return NULL;
  }
  return names;
}

void kernel_names_free(struct kernel_names *names) {
  if (!names)
    return;
  kernel_patterns_free(names->patterns);
  arena_release(&names->arena);
  free(names->list.at);
  free(names->index.slots);
  pthread_mutex_destroy(&names->lock);
  free(names);
}

static struct kernel *add_kernel(struct kernel_names *names, const char *name, u64 hash) {
  char shortened[KERNEL_SHORT + 1];
  struct kernel *kernel = arena_alloc(&names->arena, sizeof(*kernel));
  SCOPED char *demangled = kernel_demangle(name);
  SCOPED char *stripped = kernel_strip(demangled);
  kernel_shorten(stripped, shortened);
  kernel->raw = arena_text(&names->arena, name);
  kernel->hash = hash;
  kernel->number = names->list.n;
  kernel->demangled =
      strcmp(name, demangled) == 0 ? kernel->raw : arena_text(&names->arena, demangled);
  kernel->shortened = arena_text(&names->arena, shortened);
  kernel->category =
      kernel_patterns_match(names->patterns, demangled, stripped, &kernel->communication);
  hash_index_add(&names->index, hash, names->list.n);
  VECTOR_PUSH(&names->list, kernel);
  return kernel;
}

const struct kernel *kernel_lookup(struct kernel_names *names, const char *name) {
  const struct kernel *kernel = NULL;
  u64 hash = hash_text(HASH_SEED, name);
  pthread_mutex_lock(&names->lock);
  HASH_INDEX_EACH(&names->index, hash, i)
    if (strcmp(names->list.at[i]->raw, name) == 0) {
      kernel = names->list.at[i];
      break;
    }
  if (!kernel)
    kernel = add_kernel(names, name, hash);
  pthread_mutex_unlock(&names->lock);
  return kernel;
}

unsigned kernel_category(struct kernel_names *names, const char *name) {
  const struct kernel *kernel = name ? kernel_lookup(names, name) : NULL;
  return kernel ? kernel->category : KERNEL_OTHER;
}

struct communication kernel_communication(struct kernel_names *names, const char *name) {
  const struct kernel *kernel = names ? kernel_lookup(names, name) : NULL;
  return kernel ? kernel->communication : communication_of_kernel(name);
}

unsigned kernel_category_count(const struct kernel_names *names) {
  return kernel_patterns_categories(names->patterns);
}

const char *kernel_category_name(const struct kernel_names *names, unsigned category) {
  return kernel_patterns_category_name(names->patterns, category);
}
