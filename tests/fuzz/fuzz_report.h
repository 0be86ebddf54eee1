/* SPDX-License-Identifier: MIT
 *
 * For targets that are a whole file: from its bytes all the way to both reports. Whatever they are,
 * that ends, within memory, with reports or a reason.
 */
#ifndef TSCOPE_FUZZ_REPORT_H
#define TSCOPE_FUZZ_REPORT_H

#include "format/tscope_format.h"

/* Reports on a file of these bytes that was named on the command line; what kind it is shows. */
void fuzz_report(const u8 *data, size_t bytes);

#endif
