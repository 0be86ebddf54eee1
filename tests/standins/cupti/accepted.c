/* SPDX-License-Identifier: MIT
 *
 * What PyTorch's profiler is linked against and calls, and this stand-in accepts without effect:
 * it has no API records, and its events' times are no records either.
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
