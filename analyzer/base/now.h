/* SPDX-License-Identifier: MIT
 *
 * Times of day as people read them, and times for durations.
 */
#pragma once

#include "format/clock_ns.h"

/* A moment, in seconds since 1970, as strftime() writes it for this place; "" for NAN. To be used
 * as in f(local_time(s, "%H:%M").text), which lives until the statement ends. */
struct local_time {
  char text[32];
};
__attribute__((format(strftime, 2, 0))) static inline struct local_time
local_time(double seconds, const char *format) {
  struct local_time local = {""};
  time_t moment = seconds == seconds ? (time_t)seconds : 0;
  struct tm parts;
  if (seconds == seconds && localtime_r(&moment, &parts))
    strftime(local.text, sizeof(local.text), format, &parts);
  return local;
}

/* Since some moment in the past, for durations. */
static inline double now_s(void) {
  return (double)clock_ns(CLOCK_MONOTONIC) / 1e9;
}
