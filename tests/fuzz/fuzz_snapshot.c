/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: a snapshot of PyTorch's memory, or any other pickle.
 */
#include "fuzz_report.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  fuzz_report(data, bytes);
  return 0;
}
