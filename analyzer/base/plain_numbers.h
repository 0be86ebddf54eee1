/* SPDX-License-Identifier: MIT */
#pragma once

struct arena;

/* A sentence with its numbers as people write them: 4,360 for 4.36e+03, "unknown" for nan. */
char *plain_numbers(struct arena *arena, const char *sentence);
