/* SPDX-License-Identifier: MIT
 *
 * cuGetProcAddress(), with which the CUDA runtime finds all functions of the driver, also where it
 * is linked into NCCL, cuBLAS and cuDNN; and the calls that give kernels their names.
 */
#include "driver/driver_types.h"

#include "driver/driver_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cuda/kernel_names.h"
#include "gpu/event_pairs.h"
#include "resolve/search.h"
#include "streams/stream_numbers.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what)                            \
  type tscope_hook_##name_ params __asm__(#name_);                                                 \
  typedef type(*real_##name_) params;
TSCOPE_DRIVER_SPECIALS(HOOK)
#undef HOOK

#define REAL(name_)                                                                                \
  ((real_##name_)tscope_resolve(&driver_symbols[DRIVER_##name_], __builtin_return_address(0)))

enum { NAME_BYTES = 96 };

/* The suffixes of a function's versions, newest first, and of its forms for a thread's own default
 * stream. */
static const char *const versions[] = {"_v5", "_v4", "_v3", "_v2", ""};
static const char *const forms[] = {"", "_ptsz", "_ptds"};

/* Whether any version or form of the function is hooked. */
static bool is_hooked(const char *base, char name[NAME_BYTES]) {
  for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
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
  for (size_t i = 0; i < sizeof(versions) / sizeof(*versions) && !is_exported; i++) {
    bool has_version = false;
    for (size_t j = 0; j < sizeof(forms) / sizeof(*forms) && !is_exported; j++) {
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

static bool can_replace(const char *symbol, void *const *function, CUresult result) {
  return result == CUDA_SUCCESS && symbol && function && *function && driver_is_wanted();
}

TSCOPE_EXPORT CUresult tscope_hook_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                                                    cuuint64_t flags) {
  real_cuGetProcAddress real = REAL(cuGetProcAddress);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  CUresult result = real(symbol, pfn, cudaVersion, flags);
  if (can_replace(symbol, pfn, result))
    *pfn = wrapper_for(symbol, *pfn, cudaVersion, flags);
  return result;
}

#define GET_PROC_ADDRESS_V2(name)                                                                  \
  TSCOPE_EXPORT CUresult tscope_hook_##name(const char *symbol, void **pfn, int cudaVersion,       \
                                            cuuint64_t flags, void *symbolStatus) {                \
    real_##name real = REAL(name);                                                                 \
    if (!real)                                                                                     \
      return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;                                                 \
    CUresult result = real(symbol, pfn, cudaVersion, flags, symbolStatus);                         \
    if (can_replace(symbol, pfn, result))                                                          \
      *pfn = wrapper_for(symbol, *pfn, cudaVersion, flags);                                        \
    return result;                                                                                 \
  }
GET_PROC_ADDRESS_V2(cuGetProcAddress_v2)
GET_PROC_ADDRESS_V2(cuGetProcAddress_v2_ptsz)

TSCOPE_EXPORT CUresult tscope_hook_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod,
                                                       const char *name) {
  real_cuModuleGetFunction real = REAL(cuModuleGetFunction);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  CUresult result = real(hfunc, hmod, name);
  if (result == CUDA_SUCCESS && hfunc)
    kernel_name_register_driver(*hfunc, name);
  return result;
}

TSCOPE_EXPORT CUresult tscope_hook_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library,
                                                      const char *name) {
  real_cuLibraryGetKernel real = REAL(cuLibraryGetKernel);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  CUresult result = real(pKernel, library, name);
  if (result == CUDA_SUCCESS && pKernel)
    kernel_name_register_driver(*pKernel, name);
  return result;
}

TSCOPE_EXPORT CUresult tscope_hook_cuStreamDestroy_v2(CUstream hStream) {
  real_cuStreamDestroy_v2 real = REAL(cuStreamDestroy_v2);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  event_pairs_stream_destroy(
      hStream); /* first: another thread may be given the handle before this returns */
  return real(hStream);
}

/* Events are destroyed with their context; tscope must not query its own after that. */
TSCOPE_EXPORT CUresult tscope_hook_cuCtxDestroy_v2(CUcontext ctx) {
  real_cuCtxDestroy_v2 real = REAL(cuCtxDestroy_v2);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  if (ctx)
    event_pairs_context_destroy(ctx);
  return real(ctx);
}

/* The last release ends the context. */
TSCOPE_EXPORT CUresult tscope_hook_cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  real_cuDevicePrimaryCtxRelease_v2 real = REAL(cuDevicePrimaryCtxRelease_v2);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  bool held = event_pairs_hold();
  CUresult result = real(dev);
  CUresult (*get_state)(CUdevice, unsigned *, int *) =
      DRIVER_FUNCTION("cuDevicePrimaryCtxGetState");
  unsigned flags;
  int active, saved = errno;
  if (get_state && get_state(dev, &flags, &active) == CUDA_SUCCESS && !active)
    event_pairs_context_destroy(NULL);
  event_pairs_let_go(held);
  errno = saved;
  return result;
}

TSCOPE_EXPORT CUresult tscope_hook_cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  real_cuDevicePrimaryCtxReset_v2 real = REAL(cuDevicePrimaryCtxReset_v2);
  if (!real)
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  event_pairs_context_destroy(NULL);
  return real(dev);
}
