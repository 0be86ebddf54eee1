/* SPDX-License-Identifier: MIT
 *
 * A library that links the CUDA driver, as Triton makes them.
 */
int cuCtxSynchronize(void);
int synchronize_by_link(void);
__attribute__((visibility("default"))) int synchronize_by_link(void) {
  return cuCtxSynchronize();
}
