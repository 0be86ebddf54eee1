/* SPDX-License-Identifier: MIT
 *
 * The facts of each section, in words: labelled lines of a few items each. The text report prints
 * them, and the JSON report has them for the page. What stands beside them are tables and pictures
 * of each output's own.
 */
#pragma once

#include <string.h>

#include "base/quantity.h"
#include "report/sections.h"

enum tone { TONE_PLAIN, TONE_STRONG, TONE_DIM, TONE_GOOD, TONE_WARNING, TONE_CRITICAL, N_TONES };

/* "plain", "strong" and so on. */
extern const char *const tone_words[N_TONES];

struct fact {
  const char *label; /* begins a line; "" for one more line of the same, NULL goes on in the line */
  const char *text;
  enum tone tone;
  double share; /* to be drawn before the text; NAN: nothing */
};

struct facts {
  struct fact *at;
  u32 n, room;
  struct arena *arena;
  const char *label; /* of the line that the next item begins; NULL: it goes on */
};

/* What a section says of its subject, and, in one line without a label, what its figures are of and
 * how good they are. They live as long as `arena`. */
struct facts section_facts(enum section_id id, const struct results *results, struct arena *arena);
struct facts section_basis(enum section_id id, const struct results *results, struct arena *arena);

/* For the functions that follow: begins a line, and adds an item. */
void fact_label(struct facts *facts, const char *label);
void fact_item(struct facts *facts, enum tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define fact_line(facts, label, ...) (fact_label(facts, label), fact_item(facts, __VA_ARGS__))

/* The same with a bar before it. */
void fact_share(struct facts *facts, enum tone tone, double share, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An item whose figure is a struct quantity, where that is known. */
#define fact_if_known(facts, tone, format, quantity_)                                              \
  do {                                                                                             \
    struct quantity figure_ = quantity_;                                                           \
    if (strcmp(figure_.text, quantity_unknown) != 0)                                               \
      fact_item(facts, tone, format, figure_.text);                                                \
  } while (0)

/* A line that --steps left some out. A part says nothing of the rest, and a reader may not have
 * asked for it. */
void fact_chosen_steps(struct facts *facts, const char *label, const char *of,
                       const struct steps *steps);

/* "a step"; "in all" if there were no steps and figures are for the whole run. */
const char *per_step(const struct results *results);

#define TSCOPE_SECTIONS_WITH_FACTS(S)                                                              \
  S(run_end)                                                                                       \
  S(trust)                                                                                         \
  S(hang)                                                                                          \
  S(stalls)                                                                                        \
  S(steps)                                                                                         \
  S(distributed)                                                                                   \
  S(overlap)                                                                                       \
  S(gpu)                                                                                           \
  S(gemms)                                                                                         \
  S(pipeline)                                                                                      \
  S(budget)                                                                                        \
  S(memory)                                                                                        \
  S(modules)                                                                                       \
  S(convergence)                                                                                   \
  S(diff_steps)

#define TSCOPE_SECTIONS_WITH_BASIS(S)                                                              \
  S(phases)                                                                                        \
  S(ranges)                                                                                        \
  S(lines)                                                                                         \
  S(overlap)                                                                                       \
  S(collectives)                                                                                   \
  S(gpu)                                                                                           \
  S(kernels)                                                                                       \
  S(gemms)                                                                                         \
  S(path)                                                                                          \
  S(budget)                                                                                        \
  S(modules)                                                                                       \
  S(diff_times)                                                                                    \
  S(diff_lines)                                                                                    \
  S(diff_kernels)                                                                                  \
  S(diff_provenance)

#define S(name) void facts_of_##name(struct facts *facts, const struct results *results);
TSCOPE_SECTIONS_WITH_FACTS(S)
#undef S
#define S(name) void basis_of_##name(struct facts *facts, const struct results *results);
TSCOPE_SECTIONS_WITH_BASIS(S)
#undef S
