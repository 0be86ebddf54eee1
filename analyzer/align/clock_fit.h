/* SPDX-License-Identifier: MIT
 *
 * Ties the clocks of different hosts to one, by two kinds of evidence.
 *
 * What is certain: nobody ends before all have started (clock_bounds.h).
 *
 * What is likely: all members of a barrier-like collective end together. How nearly, depends on how
 * ends are timed. A GPU kernel's end is the end: apart from scatter, the ends of ranks differ by
 * what the order of a ring or a slow link does, and that shows as differences between ranks of one
 * host and between collectives of different sizes. A thread of the host may be late to notice. So
 * such ends are only taken to lie within one transfer of each other, in the quickest quarter of the
 * collectives.
 *
 * The clock is put into the middle of what both allow, at the first and at the last of the events
 * that tie it. Its error is half of what they leave: between these, the truth lies within, also
 * after drift. Where the middle of what is likely is impossible, only what is certain counts.
 */
#pragma once

#include "align/align.h"
#include "align/clock_domains.h"
#include "align/samples.h"

#define CLOCK_FIT_LEAST 3u /* collectives; fewer say nothing */

struct domain_clock {
  bool placed;
  bool by_messages; /* no barrier-like collective ties it */
  bool by_bounds;   /* bounds are narrower than what the ends say */
  struct rank_clock clock;
  double drift_error; /* of clock.drift; 0 for the root's clock */
  double error_ns;    /* against the axis, from its first tie to its last; 0 for the root's clock */
  double transfer_ns; /* the median of those that tie it */
  u32 points;         /* collectives and messages that it rests on */
};

/* Starts from the domain `root`, whose clock becomes the axis, and follows collectives outwards.
 * `clocks` [domains.n] must be zero. */
void clock_fit_domains(const struct model *model, const struct clock_facts *facts,
                       const struct samples *samples, const struct clock_domains *domains, u32 root,
                       struct domain_clock *clocks, unsigned threads);
