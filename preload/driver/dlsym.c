/* SPDX-License-Identifier: MIT
 *
 * The C half of dlsym(): which look-ups are answered with a wrapper of tscope's.
 */
#include <dlfcn.h>
#include <errno.h>

#include "driver/hooked_symbols.h"
#include "resolve/real_dlsym.h"

/* What the trampoline finds in two registers. */
struct answer {
  u64 is_replaced;
  void *address;
};

struct answer tscope_dlsym_instead(void *handle, const char *name);

/* Only a look-up in a library's handle is answered. With RTLD_DEFAULT and RTLD_NEXT the search
 * order decides, which already includes a preloaded library. The effects of the real dlsym() are
 * kept, including the state of dlerror(). */
TSCOPE_NOT_SANITIZED struct answer tscope_dlsym_instead(void *handle, const char *name) {
  const struct answer pass_on = {0, NULL};
  int saved = errno;
  void *(*real)(void *, const char *) = tscope_dlsym_find();
  const struct hooked_symbol *hooked =
      handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name || !real ? NULL
                                                                      : hooked_symbol_find(name);
  errno = saved;
  if (!hooked || !(hooked->is_driver ? driver_is_wanted() : look_ups_are_wanted()))
    return pass_on;
  void *address = real(handle, name);
  return (struct answer){1, hooked_symbol_wrapper(hooked, address)};
}
