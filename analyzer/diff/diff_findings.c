/* SPDX-License-Identifier: MIT
 *
 * What to make of the differences.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analyses/thresholds.h"
#include "diff/diff.h"
#include "diff/diff_findings.def"

enum { ROOM = 8, FACTS_TOLD = 3 };

static int add(struct diffing *d, const char *id, enum severity severity, double worth_s,
               char *title, char *evidence, char *action) {
  struct diff_result *out = d->out;
  if (!title || !evidence || !action || out->n_findings == ROOM)
    return -ENOMEM;
  out->findings[out->n_findings++] = (struct finding){.id = id,
                                                      .severity = severity,
                                                      .worth_s = worth_s,
                                                      .title = title,
                                                      .evidence = evidence,
                                                      .action = action};
  return 0;
}

/* The part of a step, or of memory, that grew most; NULL if none did. */
static const struct diff_row *grew_most(const struct diff_result *out,
                                        const char *const *sections) {
  const struct diff_row *most = NULL;
  for (u32 i = 0; i < out->n_rows; i++) {
    const struct diff_row *row = &out->rows[i];
    bool listed = false;
    for (const char *const *section = sections; *section; section++)
      listed |= !strcmp(row->section, *section);
    double grew = row->after - row->before;
    if (listed && grew > 0 && (!most || grew > most->after - most->before))
      most = row;
  }
  return most;
}

/* " Also different: git_commit, environment OMP_NUM_THREADS and 2 more." */
static char *what_differs(struct diffing *d) {
  const struct diff_result *out = d->out;
  char *list = arena_text(d->arena, "");
  if (!out->n_facts)
    return arena_text(d->arena, " Nothing that was recorded differs in how the runs were made.");
  for (u32 i = 0; list && i < out->n_facts && i < FACTS_TOLD; i++)
    list =
        arena_printf(d->arena, "%s%s%s%s%s", list, i ? ", " : "", out->facts[i].what,
                     out->facts[i].name ? " " : "", out->facts[i].name ? out->facts[i].name : "");
  if (list && out->n_facts > FACTS_TOLD)
    list = arena_printf(d->arena, "%s and %u more", list, out->n_facts - FACTS_TOLD);
  return list ? arena_printf(d->arena, " Different in how the runs were made: %s.", list) : NULL;
}

static int diff_rule_slower(struct diffing *d) {
  static const char *const parts[] = {"a step", "phases", NULL};
  const struct diff_result *out = d->out;
  if (!out->verdict || strcmp(out->verdict, "slower") != 0)
    return 0;
  const struct diff_row *most = grew_most(out, parts);
  char *where = most ? arena_printf(d->arena, " Most of it: %s, %.3g ms more a step.", most->name,
                                    most->after - most->before)
                     : arena_text(d->arena, "");
  char *facts = what_differs(d);
  double grew_ms = out->step_after_ms - out->step_before_ms;
  double steps = d->after->step_count > 0 ? d->after->step_count : NAN;
  return add(d, "DIFF.SLOWER",
             out->step_change >= WORTH_ALARM ? SEVERITY_CRITICAL : SEVERITY_WARNING,
             grew_ms * steps / 1e3,
             arena_printf(d->arena, "Steps take %.1f %% longer", 100 * out->step_change),
             arena_printf(d->arena,
                          "Median %.4g ms before, %.4g ms after; noise explains ±%.2g ms (p = "
                          "%.2g).%s%s",
                          out->step_before_ms, out->step_after_ms, out->step_noise_ms,
                          out->step_p_value, where ? where : "", facts ? facts : ""),
             arena_text(d->arena, "Look at the figures that grew most, then at what differs in how "
                                  "the runs were made; undo one difference at a time."));
}

static int diff_rule_memory(struct diffing *d) {
  static const char *const parts[] = {"live at peak", NULL};
  double before = d->before->memory.peak_allocated_bytes;
  double after = d->after->memory.peak_allocated_bytes, change = after / before - 1;
  if (!(change >= WORTH_MENTIONING))
    return 0;
  const struct diff_row *most = grew_most(d->out, parts);
  char *where = most ? arena_printf(d->arena, " Most of it: %s, from %.4g MB to %.4g MB.",
                                    most->name, most->before / 1e6, most->after / 1e6)
                     : arena_text(d->arena, "");
  return add(d, "DIFF.MEMORY", change >= WORTH_ALARM ? SEVERITY_CRITICAL : SEVERITY_WARNING, NAN,
             arena_printf(d->arena, "Peak memory is %.1f %% higher", 100 * change),
             arena_printf(d->arena, "%.4g MB allocated at the peak before, %.4g MB after.%s",
                          before / 1e6, after / 1e6, where ? where : ""),
             arena_text(d->arena,
                        "Look at the categories that grew: those that scale with the batch "
                        "or the sequence grow with it, parameters and optimizer do not."));
}

static int diff_rule_results(struct diffing *d) {
  const struct diff_scalar *first = NULL;
  for (u32 i = 0; i < d->out->n_scalars; i++) {
    const struct diff_scalar *one = &d->out->scalars[i];
    if (!isnan(one->parted_step) && (!first || one->parted_step < first->parted_step))
      first = one;
  }
  if (!first)
    return 0;
  char *facts = what_differs(d);
  return add(d, "DIFF.RESULTS", SEVERITY_WARNING, NAN,
             arena_printf(d->arena, "%s parts at step %.0f", first->name, first->parted_step),
             arena_printf(d->arena,
                          "%.6g before, %.6g after; they differ at all from step %.0f on, of %.0f "
                          "steps compared.%s",
                          first->before, first->after, first->first_step, first->steps,
                          facts ? facts : ""),
             arena_text(d->arena,
                        "Compare seeds and the order of input first, then code and library "
                        "versions; deterministic algorithms tell noise from a change."));
}

int diff_findings(struct diffing *d) {
  static int (*const rules[])(struct diffing *) = {
#define F(id, rule, cause, fix) diff_rule_##rule,
      TSCOPE_DIFF_FINDINGS(F)
#undef F
  };
  d->out->findings = arena_array(d->arena, ROOM, sizeof(*d->out->findings));
  int error = d->out->findings ? 0 : -ENOMEM;
  for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]) && !error; i++)
    error = rules[i](d);
  return error;
}
