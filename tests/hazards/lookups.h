/* SPDX-License-Identifier: MIT */
#pragma once

#define LOOKUPS_EXPORT __attribute__((visibility("default")))

LOOKUPS_EXPORT const char *cu_marker(void);
LOOKUPS_EXPORT const char *next_of_plugin(void);

LOOKUPS_EXPORT int links_the_library(void);
