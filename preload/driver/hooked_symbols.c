/* SPDX-License-Identifier: MIT */
#include "driver/driver_types.h"

#include "driver/driver_symbols.h"

#include <nccl.h>
#include <string.h>

#include "blas/blas_hooks.def"
#include "blas/blas_types.h"
#include "cuda/cuda_hooks.def"
#include "format/text_parts.h"
#include "gpu/cupti_clients.h"
#include "nccl/nccl_hooks.def"
#include "record/fnv.h"
#include "resolve/library_instances.h"
#include "resolve/unknown_functions.h"
#include "resolve/unloading.h"
#include "settings/env.h"
#include "streams/cuda_thread.h"

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  extern type tscope_hook_##name_ params __asm__(#name_);
TSCOPE_DRIVER_HOOKS(HOOK)
TSCOPE_CUPTI_HOOKS(HOOK)
#undef HOOK

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  [DRIVER_##name_] = {.name = #name_, .sonames = tscope_driver_sonames},
struct tscope_symbol driver_symbols[] = {TSCOPE_DRIVER_HOOKS(HOOK)};
#undef HOOK

/* Libraries that a process may hold several copies of. */
#define TSCOPE_COPIED_HOOKS(HOOK)                                                                  \
  TSCOPE_NCCL_HOOKS(HOOK)                                                                          \
  TSCOPE_CUDA_HOOKS(HOOK)                                                                          \
  TSCOPE_BLAS_HOOKS(HOOK)

/* Weak: a program may have only some of the families. */
#pragma GCC visibility push(hidden)
#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  extern type tscope_copied_##name_ params __asm__(#name_) __attribute__((weak));                  \
  extern type tscope_via_dlsym_##name_ params __attribute__((weak));                               \
  extern struct tscope_symbol tscope_symbols_##name_[] __attribute__((weak));
TSCOPE_COPIED_HOOKS(HOOK)
#undef HOOK
#pragma GCC visibility pop

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  {.name = #name_,                                                                                 \
   .wrapper = (void *)tscope_hook_##name_,                                                         \
   .symbol = &driver_symbols[DRIVER_##name_],                                                      \
   .since = (since_),                                                                              \
   .is_driver = true},
#define CUPTI_HOOK(name_, since_, type, params, args, failure, recorder, what)                     \
  {.name = #name_,                                                                                 \
   .wrapper = (void *)tscope_hook_##name_,                                                         \
   .symbol = &cupti_symbols[CUPTI_##name_],                                                        \
   .since = (since_),                                                                              \
   .is_driver = true},
#define COPIED_HOOK(name_, since_, type, params, args, failure, recorder, what)                    \
  {.name = #name_,                                                                                 \
   .wrapper = (void *)tscope_via_dlsym_##name_,                                                    \
   .exported = (void *)tscope_copied_##name_,                                                      \
   .symbol = &tscope_symbols_##name_[TSCOPE_VIA_DLSYM],                                            \
   .since = (since_)},
static const struct hooked_symbol hooked_symbols[] = {
    TSCOPE_DRIVER_HOOKS(HOOK) TSCOPE_CUPTI_HOOKS(CUPTI_HOOK) TSCOPE_COPIED_HOOKS(COPIED_HOOK)};
enum { N_HOOKED = LENGTH_OF(hooked_symbols), TABLE_SLOTS = 2048 };
_Static_assert(2 * N_HOOKED <= TABLE_SLOTS, "the table of names is at most half full");

/* What happened at look-ups of each function (either or both of two), and what the trace has of
 * it. */
enum outcome { SEEN = 1, NOT_SEEN = 2 };
static u8 outcomes[N_HOOKED], reported[N_HOOKED];
static const void *not_seen[N_HOOKED]; /* a function that was given out as it is */
static u32 changes, changes_reported;

bool driver_is_wanted(void) {
  return TSCOPE_ONCE(tscope_is_wanted() && tscope_env_flag("TSCOPE_DRIVER", true));
}

bool look_ups_are_wanted(void) {
  return TSCOPE_ONCE(tscope_is_wanted() && tscope_env_flag("TSCOPE_LOOKUPS", true));
}

static u32 name_hash(const char *name) {
  return (u32)tscope_fnv(TSCOPE_FNV_SEED, name, strlen(name));
}

/* Hash table of the names; an entry is 1 + index. Look-ups happen before any constructor has run,
 * and on any thread. Each thread that finds the table empty fills it, all in the same order, so
 * that all write the same. */
static const u16 *name_table(void) {
  static u16 table[TABLE_SLOTS];
  static bool filled;
  if (TSCOPE_LIKELY(__atomic_load_n(&filled, __ATOMIC_ACQUIRE)))
    return table;
  for (u16 i = 1; i <= N_HOOKED; i++)
    for (u32 slot = name_hash(hooked_symbols[i - 1].name);; slot++) {
      u16 *entry_slot = &table[slot % TABLE_SLOTS];
      u16 index = __atomic_load_n(entry_slot, __ATOMIC_RELAXED);
      if (!index)
        __atomic_store_n(entry_slot, i, __ATOMIC_RELAXED);
      if (!index || index == i)
        break;
    }
  __atomic_store_n(&filled, true, __ATOMIC_RELEASE);
  return table;
}

const struct hooked_symbol *hooked_symbol_find(const char *name) {
  if (tscope_begins_with(name, "pnccl"))
    name++;
  const u16 *table = name_table();
  for (u32 slot = name_hash(name);; slot++) {
    u16 index = __atomic_load_n(&table[slot % TABLE_SLOTS], __ATOMIC_RELAXED);
    if (!index)
      return NULL;
    if (!strcmp(hooked_symbols[index - 1].name, name))
      return hooked_symbols[index - 1].wrapper ? &hooked_symbols[index - 1] : NULL;
  }
}

static void record_outcome(const struct hooked_symbol *entry, const void *real,
                           enum outcome outcome) {
  u32 i = (u32)(entry - hooked_symbols);
  if (__atomic_load_n(&outcomes[i], __ATOMIC_RELAXED) & outcome)
    return;
  if (outcome == NOT_SEEN)
    __atomic_store_n(&not_seen[i], real, __ATOMIC_RELAXED);
  __atomic_or_fetch(&outcomes[i], outcome, __ATOMIC_RELEASE);
  __atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
}

static void *wrapper_of_copy(const struct hooked_symbol *entry, void *real) {
  bool is_bound = tscope_copy_bind(entry->symbol, real);
  record_outcome(entry, real, is_bound ? SEEN : NOT_SEEN);
  return is_bound ? entry->wrapper : real;
}

void *hooked_symbol_wrapper(const struct hooked_symbol *entry, void *real) {
  if (!real || real == entry->wrapper || real == entry->exported)
    return real;
  if (!entry->is_driver)
    return wrapper_of_copy(entry, real);
  if (!entry->symbol)
    return entry->wrapper;
  void *known = NULL;
  bool first = __atomic_compare_exchange_n(&entry->symbol->address, &known, real, false,
                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  if (first)
    tscope_keep_loaded(real); /* programs load the driver to look for a GPU, and unload it again */
  return first || known == real ? entry->wrapper : real;
}

static const char *path_of(u32 i) {
  const char *path =
      tscope_copy_path(hooked_symbols[i].symbol, __atomic_load_n(&not_seen[i], __ATOMIC_RELAXED));
  return path && *path ? path : "a further copy";
}

static void record_changes(struct tscope_thread *thread) {
  u32 now = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
  if (now == changes_reported)
    return;
  changes_reported = now;
  for (u32 i = 0; i < N_HOOKED; i++) {
    u8 news = __atomic_load_n(&outcomes[i], __ATOMIC_ACQUIRE) & (u8)~reported[i];
    reported[i] |= news;
    if (news & SEEN)
      tscope_info(thread, TSCOPE_INFO_LOOKED_UP, "seen", hooked_symbols[i].name);
    if (news & NOT_SEEN)
      tscope_info(thread, TSCOPE_INFO_LOOKED_UP, path_of(i), hooked_symbols[i].name);
  }
}

static void tick(struct tscope_thread *thread) {
  record_changes(thread);
  unknown_functions_tick(thread);
}

const struct tscope_family tscope_hooked_symbols_family = {.tick = tick, .end = record_changes};
