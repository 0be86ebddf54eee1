/* SPDX-License-Identifier: MIT */
#include "inspect/this_host.h"

#include "format/text_parts.h"
#include "inspect/small_file.h"

struct own_clock own_clock_read(void) {
  static const char name[] = "monotonic";
  struct own_clock clock = {""};
  char boot[64], offsets[256], seconds[32] = "0", nanoseconds[32] = "0";
  if (small_file_read("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) <= 0)
    return clock;
  boot[strcspn(boot, "\n")] = '\0';
  if (small_file_read("/proc/self/timens_offsets", offsets, sizeof(offsets)) > 0 &&
      tscope_begins_with(offsets, name))
    sscanf(offsets + strlen(name), "%31s %31s", seconds, nanoseconds);
  snprintf(clock.text, sizeof(clock.text), "%s %s %s", boot, seconds, nanoseconds);
  return clock;
}
