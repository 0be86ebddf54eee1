/* SPDX-License-Identifier: MIT */
#pragma once

/* One line on standard error. */
__attribute__((format(printf, 1, 2))) void print_message(const char *format, ...);
