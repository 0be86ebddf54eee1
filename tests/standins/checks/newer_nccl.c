/* SPDX-License-Identifier: MIT
 *
 * A library that calls itself NCCL's and has functions of the future.
 */
#define FUNCTION(name)                                                                             \
  __attribute__((visibility("default"))) int name(void);                                           \
  __attribute__((visibility("default"))) int name(void) {                                          \
    return 0;                                                                                      \
  }

FUNCTION(ncclAllShuffle)
FUNCTION(ncclCommSendAll)
FUNCTION(ncclCommAge) /* starts nothing, by its name */
