/* SPDX-License-Identifier: MIT
 *
 * NVML for a GPU of which it knows nothing but that it is there.
 */
#define NVML(name, parameters, result)                                                             \
  __attribute__((visibility("default"))) int name parameters;                                      \
  __attribute__((visibility("default"))) int name parameters {                                     \
    return result;                                                                                 \
  }
enum { DONE = 0, NOT_SUPPORTED = 3 };

NVML(nvmlInit_v2, (void), DONE)
NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device),
     (*device = (void *)bus, DONE))
NVML(nvmlDeviceGetGpuFabricInfoV, (void), NOT_SUPPORTED)
NVML(nvmlDeviceGetNvLinkRemoteDeviceType, (void), NOT_SUPPORTED)
NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, (void), NOT_SUPPORTED)
NVML(nvmlDeviceGetComputeRunningProcesses, (void), NOT_SUPPORTED)
NVML(nvmlSystemGetCudaDriverVersion_v2, (void), NOT_SUPPORTED)
