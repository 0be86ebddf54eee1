/* SPDX-License-Identifier: MIT
 *
 * The functions of PyTorch that report tensor memory, under their names for the linker. Each notes
 * its arguments, and New() reports the same block again, as it does for a profiler.
 */
#include "inside_c10.h"

#define C10 __attribute__((visibility("default")))

C10 __thread struct c10_call c10_last;

C10 void c10_report(void *address, long bytes, unsigned long allocated, unsigned long reserved,
                    unsigned short device) {
  c10_last = (struct c10_call){address, bytes, allocated, reserved, device, c10_last.calls + 1};
}

C10 void c10_report_refused(long bytes, unsigned long allocated, unsigned long reserved,
                            unsigned short device) {
  c10_last = (struct c10_call){0, bytes, allocated, reserved, device, c10_last.calls + 1};
}

C10 void c10_cpu_new(void *self, void *address, unsigned long bytes) {
  (void)self;
  c10_report(address, (long)bytes, 77, 0, C10_CPU);
}
