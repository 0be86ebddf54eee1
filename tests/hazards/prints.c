/* SPDX-License-Identifier: MIT
 *
 * A program that marks a thousand training steps and prints a loss in each with write(). It is
 * linked so that its GOT entry of write() is in memory that the linker makes read-only, directly
 * before the program's writable data.
 */
#include <stdio.h>
#include <unistd.h>

#include "tscope.h"

static volatile int written = 1;

int main(void) {
  for (unsigned long step = 0; step < 1000; step++) {
    char line[64];
    int length = snprintf(line, sizeof(line), "step %lu: loss=%lu\n", step, step);
    TSCOPE_STEP(step);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
      return 1;
    written++;
  }
  return written == 1001 ? 0 : 2;
}
