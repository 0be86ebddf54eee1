/* SPDX-License-Identifier: MIT
 *
 * Functions that PyTorch's profiler is linked with and calls. They succeed without effect: this
 * stand-in has neither API records nor timestamps of CUDA events.
 */
#include "cupti_standin.h"

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t on) {
  (void)id, (void)on;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t on) {
  (void)id, (void)on;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t on) {
  (void)on;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id,
                                          const char **name) {
  (void)domain, (void)id;
  *name = "a call";
  return CUPTI_SUCCESS;
}
