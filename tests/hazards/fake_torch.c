/* SPDX-License-Identifier: MIT
 *
 * Two functions of PyTorch's library: the one by which it is recognised, and a hooked one.
 */
#define FAKE_EXPORT __attribute__((visibility("default")))

const char *_ZNK2at14RecordFunction4nameEv(const void *range);
FAKE_EXPORT const char *_ZNK2at14RecordFunction4nameEv(const void *range) {
  return range;
}

unsigned long _ZN2at15sequence_number17get_and_incrementEv(void);
FAKE_EXPORT unsigned long _ZN2at15sequence_number17get_and_incrementEv(void) {
  static unsigned long number;
  return number++;
}
