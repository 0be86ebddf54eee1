/* SPDX-License-Identifier: MIT
 *
 * A program that marks a thousand training steps and prints a loss in each with write(). It is
 * linked so that its GOT entry of write() is in memory that the linker makes read-only, directly
 * before the program's writable data. With an argument it prints losses that no number can hold,
 * says which floating-point exceptions have come meanwhile, and ends by SIGFPE when one comes.
 */
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tscope.h"

static volatile int written = 1;

static int print_text(const char *text) {
  return write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : 1;
}

static int print_extremes(void) {
  char line[64];
  TSCOPE_STEP(0);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_OVERFLOW | FE_DIVBYZERO | FE_INVALID);
  int failed = print_text("step 1 loss: inf lr: 0.1\nstep 2 loss: 2.3131 lr: 1e-400\n") ||
               print_text("step 3 loss: 1e999\nstep 4 loss: 123456789012345678901234567890e300\n");
  snprintf(line, sizeof(line), "exceptions: %#x\n", (unsigned)fetestexcept(FE_ALL_EXCEPT));
  return failed || print_text(line);
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1)
    return print_extremes();
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
