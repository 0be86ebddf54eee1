/* SPDX-License-Identifier: MIT
 *
 * For targets whose input is one file: analyses it and writes all kinds of reports. For every input
 * this must end, without an invalid memory access, with reports or a reason.
 */
#pragma once

#include "format/tscope_format.h"

/* Reports on a file with these bytes; its kind is recognised from the content. */
void fuzz_report(const u8 *data, size_t bytes);

/* The same in two steps, for a file that is written otherwise: where it is to be, and the reports.
 */
const char *fuzz_report_path(void);
void fuzz_report_file(void);
