/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress(), with which the CUDA runtime finds all functions of the driver, also where it
 * is linked into NCCL, cuBLAS and cuDNN; and the calls that give kernels their names.
 */
#include "driver/driver_types.h"

#include "driver/driver_symbols.h"

#include <stdio.h>
#include <string.h>

#include "cuda/kernel_names.h"
#include "gpu/event_pairs.h"
#include "hooks/wrapper.h"
#include "resolve/search.h"
#include "streams/stream_numbers.h"

/* Each wrapper calls its function below: special_<name>(real, arguments...). */
#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  typedef type(*real_##name_) params;
TSCOPE_DRIVER_SPECIALS(HOOK)
#undef HOOK

enum { NAME_BYTES = 96 };

/* The suffixes of a function's versions, newest first, and of its forms for a thread's own default
 * stream. */
static const char *const versions[] = {"_v5", "_v4", "_v3", "_v2", ""};
static const char *const forms[] = {"", "_ptsz", "_ptds"};

/* Whether any version or form of the function is hooked. */
static bool is_hooked(const char *base, char name[NAME_BYTES]) {
  for (size_t i = 0; i < LENGTH_OF(versions); i++) {
    snprintf(name, NAME_BYTES, "%s%s", base, versions[i]);
    if (hooked_symbol_find(name))
      return true;
  }
  return false;
}

/* Which hooked function `real` is, which the driver returned for `base`: the one whose exported
 * name has this address. If the driver exports no such address, the newest version is assumed,
 * because callers that request a recent version get that one. A look-up that requests an older
 * version does not change. */
static const struct hooked_symbol *identify(const char *base, const void *real, int version,
                                            bool per_thread) {
  char name[NAME_BYTES];
  struct elf_object driver;
  if (strlen(base) >= NAME_BYTES - 16 || !is_hooked(base, name) || !tscope_tables_of(real, &driver))
    return NULL;
  const struct hooked_symbol *found = NULL, *newest = NULL;
  bool is_newest = true, is_exported = false;
  for (size_t i = 0; i < LENGTH_OF(versions) && !is_exported; i++) {
    bool has_version = false;
    for (size_t j = 0; j < LENGTH_OF(forms) && !is_exported; j++) {
      snprintf(name, sizeof(name), "%s%s%s", base, versions[i], forms[j]);
      const struct elf_name wanted = elf_name(name);
      const void *address = elf_object_find(&driver, &wanted);
      has_version |= address != NULL;
      is_exported = address == real;
      if (is_exported)
        found = hooked_symbol_find(name);
      else if (address && is_newest && (j > 0) == per_thread)
        newest = hooked_symbol_find(name);
    }
    is_newest &= !has_version;
  }
  if (is_exported)
    return found;
  return newest && newest->since <= version ? newest : NULL;
}

/* What the job gets in place of `real`. */
static void *wrapper_for(const char *base, void *real, int version, cuuint64_t flags) {
  TSCOPE_KEEP_ERRNO;
  const struct hooked_symbol *hooked =
      identify(base, real, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return hooked ? hooked_symbol_wrapper(hooked, real) : real;
}

static CUresult replace(const char *symbol, void **function, int version, cuuint64_t flags,
                        CUresult result) {
  if (result == CUDA_SUCCESS && symbol && function && *function && driver_is_wanted())
    *function = wrapper_for(symbol, *function, version, flags);
  return result;
}

static CUresult special_cuGetProcAddress(real_cuGetProcAddress real, const char *symbol, void **pfn,
                                         int version, cuuint64_t flags) {
  return replace(symbol, pfn, version, flags, real(symbol, pfn, version, flags));
}

static CUresult special_cuGetProcAddress_v2(real_cuGetProcAddress_v2 real, const char *symbol,
                                            void **pfn, int version, cuuint64_t flags,
                                            void *status) {
  return replace(symbol, pfn, version, flags, real(symbol, pfn, version, flags, status));
}

#define special_cuGetProcAddress_v2_ptsz special_cuGetProcAddress_v2

static CUresult special_cuModuleGetFunction(real_cuModuleGetFunction real, CUfunction *function,
                                            CUmodule module, const char *name) {
  CUresult result = real(function, module, name);
  if (result == CUDA_SUCCESS && function)
    kernel_name_register_driver(*function, name);
  return result;
}

static CUresult special_cuLibraryGetKernel(real_cuLibraryGetKernel real, CUkernel *kernel,
                                           CUlibrary library, const char *name) {
  CUresult result = real(kernel, library, name);
  if (result == CUDA_SUCCESS && kernel)
    kernel_name_register_driver(*kernel, name);
  return result;
}

static CUresult special_cuStreamDestroy_v2(real_cuStreamDestroy_v2 real, CUstream stream) {
  event_pairs_stream_destroy(
      stream); /* first: another thread may be given the handle before this returns */
  return real(stream);
}

/* Events are destroyed with their context; tscope must not query its own after that. */
static CUresult special_cuCtxDestroy_v2(real_cuCtxDestroy_v2 real, CUcontext context) {
  if (context)
    event_pairs_context_destroy(context);
  return real(context);
}

/* The last release ends the context. */
static CUresult special_cuDevicePrimaryCtxRelease_v2(real_cuDevicePrimaryCtxRelease_v2 real,
                                                     CUdevice device) {
  bool held = event_pairs_hold();
  CUresult result = real(device);
  TSCOPE_KEEP_ERRNO;
  CUresult (*get_state)(CUdevice, unsigned *, int *) =
      DRIVER_FUNCTION("cuDevicePrimaryCtxGetState");
  unsigned flags;
  int active;
  if (get_state && get_state(device, &flags, &active) == CUDA_SUCCESS && !active)
    event_pairs_context_destroy(NULL);
  event_pairs_let_go(held);
  return result;
}

static CUresult special_cuDevicePrimaryCtxReset_v2(real_cuDevicePrimaryCtxReset_v2 real,
                                                   CUdevice device) {
  event_pairs_context_destroy(NULL);
  return real(device);
}

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  TSCOPE_EXPORT type tscope_hook_##name_ params TSCOPE_FORWARD(                                    \
      tscope_resolve(&driver_symbols[DRIVER_##name_], __builtin_return_address(0)), type, params,  \
      failure, return special_##name_(real TSCOPE_MORE args);)
TSCOPE_DRIVER_SPECIALS(HOOK)
