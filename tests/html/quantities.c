/* SPDX-License-Identifier: MIT
 *
 * What base/quantity.c makes of some numbers, as a list of [name of the page's function, number,
 * text]: pages.py compares it with what the page makes of them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/quantity.h"

static struct quantity ms_of(double value) {
  return duration_ms(value);
}

static struct quantity us_of(double value) {
  return duration_s(value * 1e-6);
}

static struct quantity flops_of(double value) {
  return flops(value, "FLOP");
}

static const struct {
  const char *name; /* in quantity.js */
  struct quantity (*say)(double);
} functions[] = {{"seconds", duration_s},
                 {"ms", ms_of},
                 {"us", us_of},
                 {"bytes", byte_size},
                 {"memory", memory_size},
                 {"count", count_of},
                 {"percent", percent},
                 {"bandwidth", bandwidth},
                 {"signedPercent", signed_percent},
                 {"probability", probability},
                 {"flops", flops_of}};

/* In all sizes, with halves that may be rounded up or down, and at the ends of units. */
static const double factors[] = {1, 1.005, 1.015, 1.125, 2.5, 3.456789, 9.994, 9.995, 9.9951};
static const double numbers[] = {NAN,    0,      0.125, 0.225,  0.9949, 0.995,   0.99951,
                                 0.999,  0.9996, 1023,  1023.5, 1024,   119.4,   119.5,
                                 3599.6, 7500,   9e4,   172800, 1e6,    1 << 30, 80.0 * (1 << 30)};

static void put(double value, bool *first) {
  for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
    if (functions[i].say == probability && (value < 0 || value > 1))
      continue;
    printf("%s[\"%s\", ", *first ? "[" : ",\n", functions[i].name);
    printf(isnan(value) ? "null" : "%.17g", value);
    printf(", \"%s\"]", functions[i].say(value).text);
    *first = false;
  }
}

int main(void) {
  bool first = true;
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    put(numbers[i], &first);
  for (int power = -13; power <= 16; power++)
    for (size_t i = 0; i < sizeof(factors) / sizeof(*factors); i++) {
      put(factors[i] * pow(10, power), &first);
      put(-factors[i] * pow(10, power), &first);
    }
  puts("]");
  return 0;
}
