/* SPDX-License-Identifier: MIT
 *
 * Devices and contexts: eight GPUs with the attributes of an H100, and one context for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { STACK_SIZE = 32 };

struct CUctx_st {
  int device;
  unsigned flags;
  unsigned retained;
  bool green;        /* a part of the device's processors, and current in one thread at a time */
  bool ended;        /* until it is retained again */
  const void *owner; /* something of the thread in which it is current */
  unsigned held;     /* how often */
};

static struct CUctx_st primary[SIM_DEVICES] = {{.device = 0}, {.device = 1}, {.device = 2},
                                               {.device = 3}, {.device = 4}, {.device = 5},
                                               {.device = 6}, {.device = 7}};
_Static_assert(SIM_DEVICES == 8, "one context for each device");
static __thread struct CUctx_st *stack[STACK_SIZE];
static __thread unsigned depth;

static struct CUctx_st greens[4];

static bool is_device(CUdevice device) {
  return device >= 0 && device < SIM_DEVICES;
}

struct CUctx_st *driver_context(void) {
  return depth ? stack[depth - 1] : NULL;
}

void *driver_green_context(void) {
  return depth && stack[depth - 1] && stack[depth - 1]->green ? stack[depth - 1] : NULL;
}

struct CUctx_st *driver_primary_context(CUdevice device) {
  return &primary[device];
}

static void leave(struct CUctx_st *context) {
  if (context && context->green && --context->held == 0)
    context->owner = NULL;
}

static void enter(struct CUctx_st *context) {
  if (!context || !context->green)
    return;
  if (context->ended || (context->held && context->owner != &depth)) {
    fprintf(stderr, "stand-in driver: a green context was used %s\n",
            context->ended ? "after its end" : "in two threads");
    abort();
  }
  context->owner = &depth;
  context->held++;
}

static CUresult set_current(struct CUctx_st *context) {
  if (!depth)
    depth = 1;
  leave(stack[depth - 1]);
  enter(context);
  stack[depth - 1] = context;
  if (context)
    *sim_device() = context->device;
  return CUDA_SUCCESS;
}

ENTRY(cuInit, (unsigned flags)) {
  return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ENTRY(cuDriverGetVersion, (int *version)) {
  *version = 13000;
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetCount, (int *count)) {
  *count = SIM_DEVICES;
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGet, (CUdevice * device, int ordinal)) {
  if (!is_device(ordinal))
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetName, (char *name, int bytes, CUdevice device)) {
  (void)device;
  snprintf(name, (size_t)bytes, "%s", sim_gpu_name());
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
  size_t available;
  (void)device;
  sim_memory_info(&available, bytes);
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) {
  snprintf(uuid->bytes, sizeof(uuid->bytes), "standin-%d", device);
  return CUDA_SUCCESS;
}
#undef cuDeviceGetUuid
ENTRY(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) {
  return cuDeviceGetUuid_v2(uuid, device);
}

ENTRY(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice device)) {
  memset(luid, 0, 8);
  *mask = 1u << device;
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetPCIBusId, (char *text, int bytes, CUdevice device)) {
  snprintf(text, (size_t)bytes, "0000:%02X:00.0", 0x10 + device);
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetByPCIBusId, (CUdevice * device, const char *text)) {
  unsigned bus;
  if (sscanf(text, "%*x:%x:", &bus) != 1 || !is_device((int)bus - 0x10))
    return CUDA_ERROR_INVALID_VALUE;
  *device = (int)bus - 0x10;
  return CUDA_SUCCESS;
}

/* CU_DEVICE_ATTRIBUTE_... of an H100; all others are 0. */
#define ATTRIBUTES(X)                                                                              \
  X(MAX_THREADS_PER_BLOCK, 1024)                                                                   \
  X(MAX_BLOCK_DIM_X, 1024)                                                                         \
  X(MAX_BLOCK_DIM_Y, 1024)                                                                         \
  X(MAX_BLOCK_DIM_Z, 64)                                                                           \
  X(MAX_GRID_DIM_X, 2147483647)                                                                    \
  X(MAX_GRID_DIM_Y, 65535)                                                                         \
  X(MAX_GRID_DIM_Z, 65535)                                                                         \
  X(MAX_SHARED_MEMORY_PER_BLOCK, 49152)                                                            \
  X(TOTAL_CONSTANT_MEMORY, 65536)                                                                  \
  X(WARP_SIZE, 32)                                                                                 \
  X(MAX_PITCH, 2147483647)                                                                         \
  X(MAX_REGISTERS_PER_BLOCK, 65536)                                                                \
  X(CLOCK_RATE, 1980000)                                                                           \
  X(TEXTURE_ALIGNMENT, 512)                                                                        \
  X(TEXTURE_PITCH_ALIGNMENT, 32)                                                                   \
  X(GPU_OVERLAP, 1)                                                                                \
  X(MULTIPROCESSOR_COUNT, 132)                                                                     \
  X(CAN_MAP_HOST_MEMORY, 1)                                                                        \
  X(CONCURRENT_KERNELS, 1)                                                                         \
  X(ECC_ENABLED, 1)                                                                                \
  X(MEMORY_CLOCK_RATE, 2619000)                                                                    \
  X(GLOBAL_MEMORY_BUS_WIDTH, 5120)                                                                 \
  X(L2_CACHE_SIZE, 52428800)                                                                       \
  X(MAX_THREADS_PER_MULTIPROCESSOR, 2048)                                                          \
  X(ASYNC_ENGINE_COUNT, 3)                                                                         \
  X(UNIFIED_ADDRESSING, 1)                                                                         \
  X(COMPUTE_CAPABILITY_MAJOR, 9)                                                                   \
  X(COMPUTE_CAPABILITY_MINOR, 0)                                                                   \
  X(STREAM_PRIORITIES_SUPPORTED, 1)                                                                \
  X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472)                                                  \
  X(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)                                                       \
  X(MANAGED_MEMORY, 1)                                                                             \
  X(COMPUTE_PREEMPTION_SUPPORTED, 1)                                                               \
  X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)                                                    \
  X(COOPERATIVE_LAUNCH, 1)                                                                         \
  X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448)                                                     \
  X(HOST_REGISTER_SUPPORTED, 1)                                                                    \
  X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1)                                                        \
  X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1)                                                \
  X(MAX_BLOCKS_PER_MULTIPROCESSOR, 32)                                                             \
  X(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024)                                                        \
  X(MEMORY_POOLS_SUPPORTED, 1)                                                                     \
  X(CLUSTER_LAUNCH, 1)                                                                             \
  X(MEM_SYNC_DOMAIN_COUNT, 4)                                                                      \
  X(UNIFIED_FUNCTION_POINTERS, 1)                                                                  \
  X(NUMA_ID, -1)                                                                                   \
  X(HOST_NUMA_ID, -1)

ENTRY(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) {
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  switch ((int)attribute) {
#define X(name, is)                                                                                \
  case CU_DEVICE_ATTRIBUTE_##name:                                                                 \
    *value = is;                                                                                   \
    break;
    ATTRIBUTES(X)
#undef X
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    *value = 0x10 + device;
    break;
  }
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
  *can = device != peer;
  return CUDA_SUCCESS;
}

ENTRY(cuDeviceGetP2PAttribute,
      (int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)) {
  (void)device, (void)peer;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
  return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  __atomic_fetch_add(&primary[device].retained, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&primary[device].ended, false, __ATOMIC_RELAXED);
  *context = &primary[device];
  return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
  if (!is_device(device) || !__atomic_load_n(&primary[device].retained, __ATOMIC_RELAXED))
    return CUDA_ERROR_INVALID_CONTEXT;
  if (__atomic_sub_fetch(&primary[device].retained, 1, __ATOMIC_RELAXED) == 0) {
    __atomic_store_n(&primary[device].ended, true, __ATOMIC_RELAXED);
    sim_events_end();
  }
  return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  sim_events_end();
  return CUDA_SUCCESS;
}

/* Only the primary contexts of the devices can be destroyed here, and work goes on after it. */
ENTRY(cuCtxDestroy_v2, (CUcontext context)) {
  (void)context;
  sim_events_end();
  return CUDA_SUCCESS;
}

ENTRY(cuGreenCtxCreate, (struct CUgreenCtx_st * *context, struct CUdevResourceDesc_st *processors,
                         CUdevice device, unsigned flags)) {
  static unsigned n;
  (void)processors, (void)flags;
  if (n == sizeof(greens) / sizeof(*greens))
    return CUDA_ERROR_OUT_OF_MEMORY;
  greens[n] = (struct CUctx_st){.device = device, .green = true};
  *context = (struct CUgreenCtx_st *)&greens[n++];
  return CUDA_SUCCESS;
}

ENTRY(cuCtxFromGreenCtx, (CUcontext * context, struct CUgreenCtx_st *green)) {
  *context = (CUcontext)green;
  return CUDA_SUCCESS;
}

ENTRY(cuGreenCtxDestroy, (struct CUgreenCtx_st * green)) {
  ((struct CUctx_st *)green)->ended = true;
  return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active)) {
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  *flags = primary[device].flags;
  /* The context of every device exists from the start. */
  *active = !__atomic_load_n(&primary[device].ended, __ATOMIC_RELAXED);
  return CUDA_SUCCESS;
}

ENTRY(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags)) {
  if (!is_device(device))
    return CUDA_ERROR_INVALID_DEVICE;
  primary[device].flags = flags;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCurrent, (CUcontext * context)) {
  *context = driver_context();
  return CUDA_SUCCESS;
}

ENTRY(cuCtxSetCurrent, (CUcontext context)) {
  return set_current(context);
}

ENTRY(cuCtxPushCurrent_v2, (CUcontext context)) {
  if (depth == STACK_SIZE)
    return CUDA_ERROR_INVALID_CONTEXT;
  depth++;
  return set_current(context);
}

ENTRY(cuCtxPopCurrent_v2, (CUcontext * context)) {
  if (!depth)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (context)
    *context = driver_context();
  leave(driver_context());
  stack[--depth] = NULL;
  if (driver_context())
    *sim_device() = driver_context()->device;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice, (CUdevice * device)) {
  *device = driver_context() ? driver_context()->device : *sim_device();
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetDevice_v2, (CUdevice * device, CUcontext context)) {
  *device = context ? context->device : *sim_device();
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetFlags, (unsigned *flags)) {
  *flags = driver_context() ? driver_context()->flags : 0;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetApiVersion, (CUcontext context, unsigned *version)) {
  (void)context;
  *version = 3020;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetId, (CUcontext context, unsigned long long *id)) {
  if (!context)
    context = driver_context();
  *id = context ? (unsigned long long)context->device + 1 : 0;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetLimit, (size_t * value, CUlimit limit)) {
  *value = limit == CU_LIMIT_STACK_SIZE ? 1024 : 8 << 20;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxSetLimit, (CUlimit limit, size_t value)) {
  (void)limit, (void)value;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxGetCacheConfig, (CUfunc_cache * config)) {
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxSetCacheConfig, (CUfunc_cache config)) {
  (void)config;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) {
  (void)peer, (void)flags;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxDisablePeerAccess, (CUcontext peer)) {
  (void)peer;
  return CUDA_SUCCESS;
}

ENTRY(cuCtxSynchronize, (void)) {
  sim_lock();
  CUresult error = (CUresult)sim_capture_device_conflict(*sim_device());
  if (!error)
    sim_wait_all(*sim_device());
  sim_unlock();
  return error;
}

ENTRY(cuCtxSynchronize_v2, (CUcontext context)) {
  (void)context;
  return cuCtxSynchronize();
}

static const struct {
  CUresult error;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

ENTRY(cuGetErrorString, (CUresult error, const char **text)) {
  *text = "another error";
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
    if (errors[i].error == error)
      *text = errors[i].text;
  return CUDA_SUCCESS;
}

ENTRY(cuGetErrorName, (CUresult error, const char **name)) {
  *name = "CUDA_ERROR_UNKNOWN";
  for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
    if (errors[i].error == error)
      *name = errors[i].name;
  return CUDA_SUCCESS;
}
