/* SPDX-License-Identifier: MIT */
#include "report/facts/facts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/checked_memory.h"

const char *const tone_words[N_TONES] = {
    [TONE_PLAIN] = "plain", [TONE_STRONG] = "strong",   [TONE_DIM] = "dim",
    [TONE_GOOD] = "good",   [TONE_WARNING] = "warning", [TONE_CRITICAL] = "critical",
};

typedef void put_facts(struct facts *, const struct results *);

static struct facts gather(put_facts *put, const struct results *results, struct arena *arena) {
  struct facts facts = {.arena = arena};
  if (put)
    put(&facts, results);
  return facts;
}

struct facts section_facts(enum section_id id, const struct results *results, struct arena *arena) {
  static put_facts *const of[N_SECTIONS] = {
#define S(name) [SECTION_##name] = facts_of_##name,
      TSCOPE_SECTIONS_WITH_FACTS(S)
#undef S
  };
  return gather(of[id], results, arena);
}

struct facts section_basis(enum section_id id, const struct results *results, struct arena *arena) {
  static put_facts *const of[N_SECTIONS] = {
#define S(name) [SECTION_##name] = basis_of_##name,
      TSCOPE_SECTIONS_WITH_BASIS(S)
#undef S
  };
  return gather(of[id], results, arena);
}

void fact_label(struct facts *facts, const char *label) {
  facts->label = label;
}

static void add(struct facts *facts, enum tone tone, double share, const char *format,
                va_list arguments) {
  facts->at = arena_more(facts->arena, facts->at, facts->n, &facts->room, sizeof(*facts->at));
  SCOPED char *text = memory_vprintf(format, arguments);
  facts->at[facts->n++] = (struct fact){facts->label, arena_text(facts->arena, text), tone, share};
  facts->label = NULL;
}

void fact_share(struct facts *facts, enum tone tone, double share, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(facts, tone, share, format, arguments);
  va_end(arguments);
}

void fact_item(struct facts *facts, enum tone tone, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(facts, tone, NAN, format, arguments);
  va_end(arguments);
}

void fact_chosen_steps(struct facts *facts, const char *label, const char *of,
                       const struct steps *steps) {
  if (steps->chosen_from)
    fact_line(facts, label, TONE_WARNING,
              "%s%u to %u only, of the run's 0 to %u: chosen by --steps", of, steps->first,
              steps->first + steps->n - 1, steps->chosen_from - 1);
}

const char *per_step(const struct results *results) {
  return results->whole_run ? "in all" : "a step";
}
