/* SPDX-License-Identifier: MIT */
#include "driver_types.h"

#include "driver_symbols.h"

#include <string.h>

#include "cuda/cuda_thread.h"
#include "env.h"
#include "gpu/cupti_clients.h"

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  extern type tscope_hook_##name_ params __asm__(#name_);
TSCOPE_DRIVER_HOOKS(HOOK)
TSCOPE_CUPTI_HOOKS(HOOK)
#undef HOOK

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  [DRIVER_##name_] = {.name = #name_, .sonames = tscope_driver_sonames},
struct tscope_symbol driver_symbols[] = {TSCOPE_DRIVER_HOOKS(HOOK)};
#undef HOOK

#define HOOK(name_, since_, type, params, args, failure, recorder, what)                           \
  {.name = #name_,                                                                                 \
   .wrapper = (void *)tscope_hook_##name_,                                                         \
   .symbol = &driver_symbols[DRIVER_##name_],                                                      \
   .since = (since_)},
#define CUPTI_HOOK(name_, since_, type, params, args, failure, recorder, what)                     \
  {.name = #name_,                                                                                 \
   .wrapper = (void *)tscope_hook_##name_,                                                         \
   .symbol = &cupti_symbols[CUPTI_##name_],                                                        \
   .since = (since_)},
static const struct allowed allowed[] = {TSCOPE_DRIVER_HOOKS(HOOK) TSCOPE_CUPTI_HOOKS(CUPTI_HOOK)};

bool driver_is_wanted(void) {
  static u8 state; /* 0: not read yet, 1: no, 2: yes */
  u8 now = __atomic_load_n(&state, __ATOMIC_RELAXED);
  if (TSCOPE_UNLIKELY(!now)) {
    now = tscope_env_flag("TSCOPE", true) && tscope_env_flag("TSCOPE_DRIVER", true) ? 2 : 1;
    __atomic_store_n(&state, now, __ATOMIC_RELAXED);
  }
  return now == 2;
}

const struct allowed *allowed_find(const char *name) {
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
    if (!strcmp(allowed[i].name, name))
      return &allowed[i];
  return NULL;
}

void *allowed_wrapper(const struct allowed *entry, void *real) {
  if (!real || real == entry->wrapper)
    return real;
  if (!entry->symbol)
    return entry->wrapper;
  void *known = NULL;
  bool first = __atomic_compare_exchange_n(&entry->symbol->address, &known, real, false,
                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  return first || known == real ? entry->wrapper : real;
}
