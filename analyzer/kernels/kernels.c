/* SPDX-License-Identifier: MIT */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "kernels/kernel_text.h"
#include "kernels/patterns.h"

struct kernel_names {
  struct kernel_patterns *patterns;
  pthread_mutex_t lock; /* over all that follows */
  struct arena arena;
  struct kernel **slots; /* by hash, open addressing, never more than half full */
  size_t n_slots, n_kernels;
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
  free(names->slots);
  pthread_mutex_destroy(&names->lock);
  free(names);
}

static struct kernel **find_slot(struct kernel **slots, size_t n, const char *name) {
  size_t at = hash_text(HASH_SEED, name) & (n - 1);
  while (slots[at] && strcmp(slots[at]->raw, name) != 0)
    at = (at + 1) & (n - 1);
  return &slots[at];
}

static void make_room(struct kernel_names *names) {
  if (names->n_slots && names->n_kernels < names->n_slots / 2)
    return;
  size_t n = names->n_slots ? names->n_slots * 2 : 256;
  struct kernel **slots = memory_zeroed(n, sizeof(*slots));
  for (size_t i = 0; i < names->n_slots; i++)
    if (names->slots[i])
      *find_slot(slots, n, names->slots[i]->raw) = names->slots[i];
  free(names->slots);
  names->slots = slots;
  names->n_slots = n;
}

static struct kernel *add_kernel(struct kernel_names *names, const char *name) {
  char shortened[KERNEL_SHORT + 1];
  struct kernel *kernel = arena_alloc(&names->arena, sizeof(*kernel));
  char *demangled = kernel_demangle(name);
  char *stripped = kernel_strip(demangled);
  kernel_shorten(stripped, shortened);
  kernel->raw = arena_text(&names->arena, name);
  kernel->hash = hash_text(HASH_SEED, name);
  kernel->demangled =
      strcmp(name, demangled) == 0 ? kernel->raw : arena_text(&names->arena, demangled);
  kernel->shortened = arena_text(&names->arena, shortened);
  kernel->category =
      kernel_patterns_match(names->patterns, demangled, stripped, &kernel->communication);

  free(stripped);
  free(demangled);
  return kernel;
}

const struct kernel *kernel_lookup(struct kernel_names *names, const char *name) {
  struct kernel *kernel = NULL;
  pthread_mutex_lock(&names->lock);
  make_room(names);
  struct kernel **slot = find_slot(names->slots, names->n_slots, name);
  if (!*slot) {
    *slot = add_kernel(names, name);
    (*slot)->number = (unsigned)names->n_kernels++;
  }
  kernel = *slot;

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
