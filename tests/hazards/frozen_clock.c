/* SPDX-License-Identifier: MIT
 *
 * A preloaded library that stops the clock, as those do that give a program another date.
 */
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  *now = (struct timespec){.tv_sec = id == CLOCK_REALTIME ? 1600000000 : 1000};
  return 0;
}
