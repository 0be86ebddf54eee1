/* SPDX-License-Identifier: MIT
 *
 * What several outputs say in the same words: the text report prints these sentences, and the JSON
 * report has them for the page. They live as long as `arena`, or for ever.
 */
#pragma once

#include "base/arena.h"
#include "report/sections.h"

/* What is said in place of findings where there are none; else NULL. */
const char *say_no_finding(const struct results *results, struct arena *arena);

/* What a fix saves, one after the other: the time, its spread over steps, and which other findings
 * would save part of it. */
struct savings {
  const char *texts[3];
  u32 n;
};
struct savings say_saving(const struct finding *finding, const struct results *results,
                          struct arena *arena);

/* The quartiles of a saving over steps, as shares of the time; NULL where they differ little. */
const char *say_spread(double low, double high, double saves, struct arena *arena);

/* "waiting in all_reduce", or "last call all_reduce"; NULL: no call is known. */
const char *say_doing(const struct rank_ending *rank, struct arena *arena);

/* Where much of a step communicates and most of that costs nothing: the first thing to know of it,
 * and no finding says so. Else NULL. */
const char *say_hidden_communication(const struct results *results, struct arena *arena);
