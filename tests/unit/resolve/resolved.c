/* SPDX-License-Identifier: MIT */
int resolved_by_hash(void);
__attribute__((visibility("default"))) int resolved_by_hash(void) {
  return 42;
}
