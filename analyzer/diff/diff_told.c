/* SPDX-License-Identifier: MIT
 *
 * What the reports of one side warn of and those of the other side do not: what a change mended,
 * and what it broke.
 */
#include "analyses/findings/findings.h"
#include "diff/diff.h"

/* A run's warning, or worse, of this kind; NULL. */
static const struct finding *warning_of(const struct results *run, enum finding_id id) {
  return FIND(run->findings, run->n_findings, one,
              one->id == id && one->severity >= SEVERITY_WARNING);
}

static u32 runs_with(const struct diff_side *side, enum finding_id id) {
  u32 n = 0;
  FOR_EACH(side->runs, side->n, run)
    n += warning_of(*run, id) != NULL;
  return n;
}

static bool is_told(const struct diff_side *side, const struct diff_side *other,
                    enum finding_id id) {
  return 2 * runs_with(side, id) > side->n && runs_with(other, id) == 0;
}

/* The titles of warnings that most runs of a side have, and none of the other: each as the first
 * run that has it says it. */
static const char **list_told(struct diffing *d, const struct diff_side *side,
                              const struct diff_side *other, u32 *n) {
  u32 most = TOTAL(u32, side->runs, side->n, one, (*one)->n_findings);
  const char **list = arena_array(d->arena, most, sizeof(*list));
  *n = 0;
  for (u32 i = 0; i < side->n; i++)
    FOR_EACH(side->runs[i]->findings, side->runs[i]->n_findings, finding) {
      const struct diff_side before = {.runs = side->runs, .n = i};
      if (warning_of(side->runs[i], finding->id) == finding && is_told(side, other, finding->id) &&
          runs_with(&before, finding->id) == 0)
        list[(*n)++] = say(d, "%s: %s", finding_id_words[finding->id], finding->title);
    }
  return list;
}

void diff_told(struct diffing *d) {
  struct diff_result *out = d->out;
  out->gone = list_told(d, d->sides[BEFORE], d->sides[AFTER], &out->n_gone);
  out->came = list_told(d, d->sides[AFTER], d->sides[BEFORE], &out->n_came);
}
