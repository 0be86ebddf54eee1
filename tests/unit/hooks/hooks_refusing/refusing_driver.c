/* SPDX-License-Identifier: MIT
 *
 * As much of a driver as CUPTI needs to be asked at all, for the CUDA that the environment says.
 */
#include <stdlib.h>

#define DRIVER_EXPORT __attribute__((visibility("default")))

int cuGetExportTable(void);
DRIVER_EXPORT int cuGetExportTable(void) {
  return 1; /* CUDA_ERROR_INVALID_VALUE */
}

int cuDriverGetVersion(int *version);
DRIVER_EXPORT int cuDriverGetVersion(int *version) {
  *version = atoi(getenv("DRIVER_FOR"));
  return 0;
}
