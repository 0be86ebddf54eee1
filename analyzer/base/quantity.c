/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "base/units.def"

const char quantity_unknown[] = "unknown";

__attribute__((format(printf, 1, 2))) static struct quantity format_quantity(const char *format,
                                                                             ...) {
  struct quantity quantity;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(quantity.text, sizeof(quantity.text), format, arguments);
  va_end(arguments);
  return quantity;
}

static struct quantity unknown(void) {
  return format_quantity("%s", quantity_unknown);
}

/* Decimals that leave three significant digits. */
static int decimals_for(double value) {
  value = fabs(value);
  return value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
}

struct quantity decimal(double value, int decimals) {
  return isnan(value) ? unknown() : format_quantity("%.*f", decimals, value);
}

struct unit {
  double scale;
  const char *name;
};
#define U(scale, name) {scale, name},

/* `units` from large to small; the last takes what is left. `more` digits than three. */
static struct quantity scaled(double value, const struct unit *units, size_t n, int more) {
  if (isnan(value))
    return unknown();
  if (value == 0)
    return format_quantity("0 %s", units[n - 1].name);
  for (size_t i = 0; i < n; i++) {
    double number = value / units[i].scale;
    /* 999.7 of a unit is 1.00 of the next. */
    if (fabs(number) >= 0.9995 || i == n - 1)
      return format_quantity("%.*f %s", decimals_for(number) + more, number, units[i].name);
  }
  return format_quantity("%g", value);
}

#define SCALED(value, units) scaled(value, units, LENGTH_OF(units), 0)

static struct quantity long_duration(double seconds) {
  double minutes = round(seconds / 60);
  if (seconds < 3600 - 0.5)
    return format_quantity("%.0f min %02.0f s", floor(round(seconds) / 60),
                           fmod(round(seconds), 60));
  if (minutes < 48 * 60)
    return format_quantity("%.0f h %02.0f min", floor(minutes / 60), fmod(minutes, 60));
  return format_quantity("%.0f d %.0f h", floor(minutes / 1440), floor(fmod(minutes, 1440) / 60));
}

static struct quantity duration(double seconds, int more) {
  static const struct unit units[] = {TSCOPE_TIME_UNITS(U)};
  if (seconds >= 119.5)
    return long_duration(seconds);
  if (seconds == 0)
    return format_quantity("0 s");
  return scaled(seconds, units, LENGTH_OF(units), more);
}

struct quantity duration_s(double seconds) {
  return duration(seconds, 0);
}

struct quantity duration_ms(double milliseconds) {
  return duration(milliseconds * 1e-3, 0);
}

struct quantity compared_ms(double milliseconds) {
  return duration(milliseconds * 1e-3, 1);
}

struct quantity byte_size(double bytes) {
  static const struct unit units[] = {TSCOPE_BYTE_UNITS(U)};
  if (fabs(bytes) < 999.5)
    return format_quantity("%.0f B", bytes);
  return SCALED(bytes, units);
}

struct quantity memory_size(double bytes) {
  static const struct unit units[] = {TSCOPE_MEMORY_UNITS(U)};
  if (fabs(bytes) < 1023.5)
    return format_quantity("%.0f B", bytes);
  return SCALED(bytes, units);
}

struct quantity count_of(double count) {
  static const struct unit units[] = {TSCOPE_COUNT_UNITS(U)};
  if (fabs(count) >= 999999.5)
    return SCALED(count, units);
  if (fabs(count) < 1000)
    return format_quantity(count == floor(count) ? "%.0f" : "%.1f", count);
  if (isnan(count))
    return unknown();
  double whole = round(count);
  return format_quantity("%.0f,%03.0f", trunc(whole / 1000), fabs(fmod(whole, 1000)));
}

struct quantity plural(double count, const char *one) {
  static const char *const hissing[] = {"s", "x", "ch", "sh"};
  int bytes = (int)strlen(one);
  bool y = bytes > 1 && one[bytes - 1] == 'y' && !strchr("aeiou", one[bytes - 2]);
  const char *end = y ? "ies" : MATCHES_ANY(one, hissing, tscope_ends_with) ? "es" : "s";
  return count == 1 ? format_quantity("1 %s", one)
                    : format_quantity("%s %.*s%s", count_of(count).text, bytes - y, one, end);
}

struct quantity plural_is(double count, const char *one) {
  return format_quantity("%s %s", plural(count, one).text, count == 1 ? "is" : "are");
}

/* A value above 0 must not read "0 %", and one below 1 must not read "100 %". */
struct quantity percent(double fraction) {
  if (isnan(fraction))
    return unknown();
  double hundredths = fraction * 100;
  if (hundredths > 0 && hundredths < 0.05)
    return format_quantity("<0.1 %%");
  if (fraction < 1 && hundredths >= 99.5)
    return format_quantity("%.1f %%", fmin(hundredths, 99.9));
  if (hundredths == 0)
    return format_quantity("0 %%");
  return format_quantity("%.*f %%", fabs(hundredths) < 9.95 ? 1 : 0, hundredths);
}

struct quantity signed_percent(double fraction) {
  if (isnan(fraction))
    return unknown();
  double hundredths = fraction * 100;
  return fabs(hundredths) < 0.05
             ? format_quantity("0 %%")
             : format_quantity("%+.*f %%", fabs(hundredths) < 9.95 ? 1 : 0, hundredths);
}

struct quantity rate(double per_second, const char *unit) {
  static const struct unit units[] = {TSCOPE_COUNT_UNITS(U) U(1e3, "k")};
  if (isnan(per_second))
    return unknown();
  if (per_second < 999.5)
    return format_quantity("%.*f %s/s", decimals_for(per_second), per_second, unit);
  return format_quantity("%s %s/s", SCALED(per_second, units).text, unit);
}

struct quantity bandwidth(double gbps) {
  static const struct unit units[] = {TSCOPE_BANDWIDTH_UNITS(U)};
  return SCALED(gbps, units);
}

struct quantity flops(double count, const char *unit) {
  static const struct unit units[] = {TSCOPE_FLOP_UNITS(U)};
  return isnan(count) ? unknown() : format_quantity("%s%s", SCALED(count, units).text, unit);
}

struct quantity probability(double p) {
  return isnan(p)    ? unknown()
         : p < 1e-12 ? format_quantity("<1e-12")
         : p < 1e-3  ? format_quantity("%.0e", p)
                     : format_quantity("%.2g", p);
}

struct quantity p_value(double p) {
  struct quantity value = probability(p);
  return format_quantity("p %s%s", *value.text == '<' ? "" : "= ", value.text);
}
