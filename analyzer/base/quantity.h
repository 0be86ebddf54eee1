/* SPDX-License-Identifier: MIT
 *
 * Numbers as people read them: three significant digits and a unit. NAN is "unknown". Units are
 * decimal (1 MB = 1e6 bytes), as for bandwidths; except for memory of devices, where a card "of 80
 * GB" has 80 GiB, as PyTorch and nvidia-smi show it.
 */
#pragma once

#include "format/tscope_format.h"

/* Returned by value; use it as in f(duration_s(x).text), which lives until the statement ends. */
struct quantity {
  char text[48];
};

extern const char quantity_unknown[]; /* "unknown" */

struct quantity duration_s(double seconds);
struct quantity duration_ms(double milliseconds);
struct quantity compared_ms(double milliseconds); /* one digit more, for two that differ little */
struct quantity byte_size(double bytes);
struct quantity memory_size(double bytes); /* of a device's memory: binary units, GiB, as there */
struct quantity count_of(double count);    /* 12,345 or 1.24 M */
struct quantity plural(double count, const char *one);    /* "1 step", "12 steps", "2 copies" */
struct quantity plural_is(double count, const char *one); /* "1 step is", "12 steps are" */
struct quantity percent(double fraction);                 /* never rounded to 0 or to 100 */
struct quantity signed_percent(double fraction);          /* +12 %, -3.1 % */
struct quantity rate(double per_second, const char *unit);
struct quantity bandwidth(double gbps); /* 1e9 bytes/s */
struct quantity flops(double count, const char *unit);
struct quantity probability(double p); /* 0.03, 2e-07, <1e-12 */
struct quantity p_value(double p);     /* p = 0.03, p <1e-12 */
struct quantity decimal(double value, int decimals);
