/* SPDX-License-Identifier: MIT
 *
 * What the differences mean. One run on each side shows that two runs differ, but so do runs of the
 * same kind: a finding based on that is only information. The exception is bits: if a job asked for
 * the same bits each time, no noise can explain a difference.
 */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.h"
#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "base/texts.h"
#include "diff/diff.h"

enum { ROOM = 8, FACTS_LISTED = 3 };

static struct finding *add_finding(struct diffing *d, enum finding_id id, enum severity severity,
                                   double saving_s, const char *title, const char *evidence,
                                   const char *action) {
  struct finding *finding = &d->out->findings[d->out->n_findings++];
  *finding = (struct finding){.id = id,
                              .severity = severity,
                              .saving_s = saving_s,
                              .saving_added_s = saving_s,
                              .title = title,
                              .evidence = evidence,
                              .action = action};
  finding_set_sections(finding);
  return finding;
}

/* Of a change for the worse. */
static enum severity severity_of_change(const struct diffing *d, double change) {
  return !d->several              ? SEVERITY_INFO
         : change >= SAVING_ALARM ? SEVERITY_CRITICAL
                                  : SEVERITY_WARNING;
}

/* What must be added if there is one run on each side; "" if there are several. */
static const char *describe_repetition(const struct diffing *d) {
  return d->several ? ""
                    : " To be sure, run each side at least three times: tscope-report diff A1 A2 "
                      "A3 -- B1 B2 B3.";
}

/* What differs in how the runs were made. */

/* What the bits of a result may depend on: seeds, algorithms, versions, the number of threads. */
static bool affects_results(const struct diff_fact *fact) {
  static const char *const variables[] = {"*SEED*", "*DETERMINIS*", "CUDNN*",     "CUBLAS*",
                                          "*TF32*", "NCCL_ALGO",    "NCCL_PROTO", "*_THREADS",
                                          "NVTE_*", "TORCH_*",      "PYTORCH_*"};
  static const char *const facts[] = {"ranks found", "git_commit", "torch",  "cuda_runtime",
                                      "cuda_driver", "nccl",       "python", "gpu_name",
                                      "cpu",         "command"};
  return fact->name ? ANY(variables, LENGTH_OF(variables), one, fnmatch(*one, fact->name, 0) == 0)
                    : MATCHES_ANY(fact->what, facts, same_text);
}

/* Where two texts too long to be shown begin to differ: at the beginning of that word. */
static size_t differ_from(const char *before, const char *after) {
  size_t word = 0;
  for (size_t i = 0; before[i] && before[i] == after[i]; i++)
    if (before[i] == ' ')
      word = i + 1;
  return word;
}

static const char *fact_text(struct arena *arena, const struct diff_fact *fact) {
  const char *before = fact->before ? fact->before : "not set",
             *after = fact->after ? fact->after : "not set";
  const int shown = 60;
  bool whole = strlen(before) <= (size_t)shown && strlen(after) <= (size_t)shown;
  size_t from = whole ? 0 : differ_from(before, after);
  const char *cut = from ? "... " : "";
  return arena_printf(arena, "%s (%s%.*s, now %s%.*s)", fact->name ? fact->name : fact->what, cut,
                      shown, before + from, cut, shown, after + from);
}

/* " Different in how the runs were made: git_commit (a, now b) and 2 more." If the finding is about
 * results, facts that affect results come first. */
static const char *describe_differences(struct diffing *d, bool of_results) {
  const struct diff_result *out = d->out;
  const char *list = "";
  u32 listed = 0;
  for (int bearing = of_results; bearing >= 0; bearing--)
    FOR_EACH(out->facts, out->n_facts, fact) {
      if (of_results && affects_results(fact) != (bool)bearing)
        continue;
      if (listed++ < FACTS_LISTED)
        list = arena_list(d->arena, list, ", ", "%s", fact_text(d->arena, fact));
    }
  if (!listed && !(out->facts_known > 0))
    return " The set-up of the runs was not recorded.";
  if (!listed)
    return " No recorded difference in the set-up of the runs.";
  if (listed > FACTS_LISTED)
    list = say(d, "%s and %u more", list, listed - FACTS_LISTED);
  return say(d, " Differences in the set-up of the runs: %s.", list);
}

/* " Changed most: train.py:4 +4 ms, ...": what explains it, in the words of diff_explain(). */
static const char *describe_places(struct diffing *d) {
  const struct diff_result *out = d->out;
  const char *list = "";
  FOR_EACH(out->explained_by, out->n_explained_by, one)
    list = arena_list(d->arena, list, ", ", "%s", *one);
  return out->n_explained_by ? say(d, " Changed most: %s.", list) : list;
}

/* " Rank 3: input 1 ms before, 35 ms after, ..." */
static const char *describe_cause(struct diffing *d) {
  const struct diff_cause *cause = &d->out->cause;
  if (!cause->text)
    return " No part of the step explains half of that.";
  if (!cause->n_ranks)
    return say(d, " Most of it: %s, %s before, %s after.", step_part_words[cause->part],
               duration_ms(cause->before_ms).text, duration_ms(cause->after_ms).text);
  bool alone = fabs(cause->peers_ms) < DIFF_LEAST_CHANGE * d->out->step_before_ms;
  const char *peers =
      alone ? "did not change" : say(d, "changed by %s", duration_ms(cause->peers_ms).text);
  const char *text = say(d, " Most of it: %s of %s a step, %s before; on the other ranks %s.",
                         step_part_words[cause->part], duration_ms(cause->after_ms).text,
                         duration_ms(cause->before_ms).text, peers);
  if (!isnan(cause->wait_after_ms))
    text = say(d, "%s They wait %s a step, %s before.", text,
               duration_ms(cause->wait_after_ms).text, duration_ms(cause->wait_before_ms).text);
  return text;
}

static const char *suggest_action(struct diffing *d) {
  const struct diff_cause *cause = &d->out->cause;
  const char *look = "Look at the figures that grew most, then at the differences in the set-up of "
                     "the runs; undo one difference at a time.";
  if (cause->n_ranks && cause->part == PART_INPUT)
    look = "Look at that rank's input: its storage, its data loader's workers, its host. The "
           "others only wait for it.";
  else if (cause->n_ranks)
    look = "Look at that rank's device and host: clocks, temperature, other processes, or more "
           "work than its peers have. The others only wait for it.";
  return say(d, "%s%s", look, describe_repetition(d));
}

static const char *describe_noise(struct diffing *d) {
  const struct diff_result *out = d->out;
  return d->several ? say(d, "noise between the runs, %u and %u, explains ±%s (%s)",
                          d->sides[BEFORE]->n, d->sides[AFTER]->n,
                          duration_ms(out->step_noise_ms).text, p_value(out->step_p_value).text)
                    : say(d,
                          "noise within each run explains ±%s; how much runs of the same kind "
                          "differ is not known",
                          duration_ms(out->step_noise_ms).text);
}

static void diff_rule_slower(struct diffing *d) {
  const struct diff_result *out = d->out;
  if (isnan(out->step_p_value) || out->step_p_value >= DIFF_SIGNIFICANCE ||
      !(out->step_change >= DIFF_LEAST_CHANGE))
    return;
  double steps = d->several && d->after->step_count > 0 ? d->after->step_count : NAN;
  const char *noise = describe_noise(d), *cause = describe_cause(d),
             *facts = describe_differences(d, false);
  struct finding *finding = add_finding(
      d, FINDING_DIFF_SLOWER, severity_of_change(d, out->step_change),
      (out->step_after_ms - out->step_before_ms) * steps / 1e3,
      say(d, "%s median step is %s longer%s%s", d->several ? "The" : "The later run's",
          percent(out->step_change).text, out->cause.text ? ": " : "",
          text_or_empty(out->cause.text)),
      say(d, "Median step %s before, %s after; %s.%s%s%s", compared_ms(out->step_before_ms).text,
          compared_ms(out->step_after_ms).text, noise, cause, describe_places(d), facts),
      suggest_action(d));
  COPY_EACH(finding, &out->cause, ranks, n_ranks);
}

static void diff_rule_rank(struct diffing *d) {
  const struct diff_result *out = d->out;
  const struct diff_cause *cause = &out->cause;
  if (!cause->n_ranks || out->step_p_value < DIFF_SIGNIFICANCE || out->step_change < 0)
    return;
  const char *noise = describe_noise(d), *cause_text = describe_cause(d),
             *facts = describe_differences(d, false);
  struct finding *finding = add_finding(
      d, FINDING_DIFF_RANK, SEVERITY_WARNING, NAN,
      say(d, "%c%s: %s more a step", cause->text[0] - 'a' + 'A', cause->text + 1,
          duration_ms(cause->after_ms - cause->before_ms).text),
      say(d,
          "More than the noise between runs (%s, over all ranks).%s The median step "
          "went from %s to %s; %s.%s",
          p_value(cause->p_value).text, cause_text, compared_ms(out->step_before_ms).text,
          compared_ms(out->step_after_ms).text, noise, facts),
      suggest_action(d));
  COPY_EACH(finding, cause, ranks, n_ranks);
}

static void diff_rule_memory(struct diffing *d) {
  const struct diff_row *peak =
      FIND(d->out->rows, d->out->n_rows, one, one->figure == FIGURE_PEAK_ALLOCATED);
  if (!peak || !(peak->change >= WORTH_MENTIONING))
    return;
  if (d->several && peak->verdict != FIGURE_IS_MORE)
    return;
  const struct diff_row *most = LARGEST(
      d->out->rows, d->out->n_rows, one,
      one->section == DIFF_OF_LIVE_AT_PEAK && one->after > one->before, one->after - one->before);
  const char *where = most ? say(d, " Most of it: %s, from %s to %s.", most->name,
                                 memory_size(most->before).text, memory_size(most->after).text)
                           : "";
  add_finding(d, FINDING_DIFF_MEMORY, severity_of_change(d, peak->change), NAN,
              say(d, "Peak memory is %s higher", percent(peak->change).text),
              say(d, "%s allocated at the peak before, %s after.%s", memory_size(peak->before).text,
                  memory_size(peak->after).text, where),
              say(d,
                  "Look at the categories that grew: activations grow with the batch or the "
                  "sequence, parameters and optimizer state do not.%s",
                  describe_repetition(d)));
}

/* If runs of one side differ: " Runs of the same side differ too, ...". */
static const char *describe_noise_of_sides(struct diffing *d) {
  for (u32 side = BEFORE; side <= AFTER; side++)
    for (u32 i = 1; i < d->sides[side]->n; i++) {
      const char *name;
      double step =
          diff_bits(d->sides[side]->runs[0]->model, d->sides[side]->runs[i]->model, &name);
      if (!isnan(step))
        return say(
            d, " Runs of one side differ too: the first and the %u. %s, in %s from step %.0f on.",
            i + 1, side == BEFORE ? "before" : "after", name, step);
    }
  return "";
}

/* What the finding is about: the result that differs first in any bit, or by a thousandth. */
static const struct diff_scalar *find_first_difference(const struct diff_result *out,
                                                       bool in_bits) {
  return LARGEST(out->scalars, out->n_scalars, one,
                 !isnan(in_bits ? one->first_step : one->parted_step) && diff_is_result(one->name),
                 in_bits ? -one->first_step : -one->parted_step);
}

static void diff_rule_bits(struct diffing *d) {
  const struct diff_scalar *first = find_first_difference(d->out, true);
  const char *within = d->out->determinism ? describe_noise_of_sides(d) : NULL;
  if (!d->out->determinism || (!first && within && !*within))
    return;
  const char *facts = describe_differences(d, true);
  const char *where = first ? say(d, "%s differs from step %.0f on, of %.0f compared%s.",
                                  first->name, first->first_step, first->steps,
                                  isnan(first->parted_step) ? "; by less than a thousandth" : "")
                            : "The runs shown are the same to the last bit.";
  if (first && !isnan(first->parted_step))
    where = say(d, "%s By more than a thousandth from step %.0f on: %.6g before, %.6g after.",
                where, first->parted_step, first->before, first->after);
  add_finding(
      d, FINDING_DIFF_BITS, SEVERITY_WARNING, NAN,
      first ? say(d, "%s differs from step %.0f on, though the job asked for determinism",
                  first->name, first->first_step)
            : "Runs of one side differ, though the job asked for determinism",
      say(d,
          "Asked for by %s. %s%s%s Seeds and flags that the program sets with a call are not "
          "recorded.",
          d->out->determinism, where, within, facts),
      "Undo what differs, one at a time. If nothing does: seed every "
      "generator and every data loader worker, turn cudnn.benchmark off, and "
      "let torch.use_deterministic_algorithms(True) name operations that have "
      "no deterministic form.");
}

/* With several runs on each side, their final levels are compared; with one run on each side, the
 * values differ anyway. */
static void diff_rule_results(struct diffing *d) {
  const struct diff_scalar *first = find_first_difference(d->out, false);
  if (!first || d->out->determinism)
    return;
  const struct diff_row *level =
      FIND(d->out->rows, d->out->n_rows, one,
           one->section == DIFF_OF_VALUES && !strcmp(one->name, first->name));
  bool apart = level && level->verdict && level->verdict != FIGURE_IS_SAME;
  const char *facts = describe_differences(d, true);
  const char *ends =
      !level ? ""
             : say(d,
                   " Over the last quarter of the steps its median is %.6g before and %.6g after; "
                   "noise between the runs %s.",
                   level->before, level->after, apart ? "does not explain that" : "explains that");
  add_finding(
      d, FINDING_DIFF_RESULTS, apart ? SEVERITY_WARNING : SEVERITY_INFO, NAN,
      apart ? say(d, "%s ends at %.4g, at %.4g before", first->name, level->after, level->before)
            : say(d, "%s differs by more than a thousandth from step %.0f on", first->name,
                  first->parted_step),
      say(d,
          "At step %.0f %.6g before, %.6g after; they differ at all from step %.0f on, of %.0f "
          "steps compared.%s%s",
          first->parted_step, first->before, first->after, first->first_step, first->steps, ends,
          facts),
      say(d,
          "Compare seeds and the order of input first, then code and library versions; "
          "deterministic algorithms tell noise from a change.%s",
          describe_repetition(d)));
}

void diff_findings(struct diffing *d) {
  static void (*const rules[])(struct diffing *) = {
#define F(group, name, rule, ...) diff_rule_##rule,
      TSCOPE_DIFF_FINDINGS(F)
#undef F
  };
  d->out->findings = arena_array(d->arena, ROOM, sizeof(*d->out->findings));
  FOR_EACH(rules, LENGTH_OF(rules), one)
    (*one)(d);
}
