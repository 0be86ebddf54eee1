/* SPDX-License-Identifier: MIT */
#pragma once

enum { C10_CPU = 0xff00, C10_CUDA_0 = 0x0001, C10_CUDA_3 = 0x0301 };

struct c10_call {
  void *address;
  long bytes;
  unsigned long allocated, reserved;
  unsigned short device;
  int calls;
};
extern __thread struct c10_call c10_last; /* of this thread */

void c10_report(
    void *address, long bytes, unsigned long allocated, unsigned long reserved,
    unsigned short device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void c10_report_refused(
    long bytes, unsigned long allocated, unsigned long reserved,
    unsigned short device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
void c10_cpu_new(void *self, void *address,
                 unsigned long bytes) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
