/* SPDX-License-Identifier: MIT
 *
 * As much of a driver as CUPTI needs to be asked at all.
 */
int cuGetExportTable(void);
__attribute__((visibility("default"))) int cuGetExportTable(void) {
  return 1; /* CUDA_ERROR_INVALID_VALUE */
}
