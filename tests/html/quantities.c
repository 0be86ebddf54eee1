/* SPDX-License-Identifier: MIT
 *
 * What base/quantity.c makes of some numbers, as a list of [name of the page's function, number,
 * text], and base/rank_list.c of some ranks: pages.py compares it with what the page makes of them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/rank_list.h"

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
  struct quantity (*made)(double);
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
  for (size_t i = 0; i < LENGTH_OF(functions); i++) {
    if (functions[i].made == probability && (value < 0 || value > 1))
      continue;
    printf("%s[\"%s\", ", *first ? "[" : ",\n", functions[i].name);
    printf(isnan(value) ? "null" : "%.17g", value);
    printf(", \"%s\"]", functions[i].made(value).text);
    *first = false;
  }
}

/* A list of ranks without every third, or with all of them. */
static void put_ranks(u32 n, u32 away, size_t limit) {
  u32 ranks[64] = {0}, listed = 0;
  for (u32 rank = 0; rank < n; rank++)
    if (rank % 3 != away)
      ranks[listed++] = n - 1 - rank;
  SCOPED char *text = rank_list(ranks, listed, limit);
  printf(",\n[\"ranks%zu\", [", limit);
  for (u32 i = 0; i < listed; i++)
    printf("%s%u", i ? ", " : "", ranks[i]);
  printf("], \"%s\"]", text);
}

int main(void) {
  bool first = true;
  for (size_t i = 0; i < LENGTH_OF(numbers); i++)
    put(numbers[i], &first);
  for (int power = -13; power <= 16; power++)
    for (size_t i = 0; i < LENGTH_OF(factors); i++) {
      put(factors[i] * pow(10, power), &first);
      put(-factors[i] * pow(10, power), &first);
    }
  for (u32 n = 0; n <= 60; n += 6)
    for (u32 away = 0; away <= 3; away++) {
      put_ranks(n, away, 24);
      put_ranks(n, away, LIST_READS_WELL);
    }
  puts("]");
  return 0;
}
