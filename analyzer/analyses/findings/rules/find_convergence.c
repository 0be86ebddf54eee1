/* SPDX-License-Identifier: MIT
 *
 * Training that went wrong or made no progress, according to the job's own values. The saving is
 * the whole run.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"

#define MOST_NAMED 5u

/* The main loss may not show it: of a validation, or one that is weighted with 0. */
static void add_broken_loss(struct findings *f, const struct convergence_series *broken) {
  const char *count = series_count_words[broken->counts];
  finding_add(f, SEVERITY_WARNING, NAN,
              say(f, "\"%.60s\" is not a number from %s %.0f on", broken->name, count,
                  broken->first_not_finite),
              say(f,
                  "\"%.60s\" is NaN or infinite in %.0f of the %.0f values that were kept, first "
                  "at %s %.0f, and stays so. The main loss is a number.",
                  broken->name, broken->not_finite, broken->values, count,
                  broken->first_not_finite),
              "Look at what this loss is computed from at that step: its data, divisions and "
              "logarithms near 0. If it is a part of what is trained, go back to a checkpoint "
              "before that.",
              NULL, 0);
}

void rule_convergence_diverged(struct findings *f) {
  const struct convergence_result *c = &f->r->convergence;
  const struct convergence_series *loss = c->loss;
  if (c->broken_loss && c->diverged_by != DIVERGED_NOT_FINITE)
    add_broken_loss(f, c->broken_loss);
  if (!c->diverged_by || !loss)
    return;
  bool finite = c->diverged_by != DIVERGED_NOT_FINITE;
  const struct convergence_series *grad = c->grad_norm;
  const char *norm =
      !grad ? ""
      : grad->not_finite > 0
          ? say(f, " The gradient norm is not finite from %s %.0f on.",
                series_count_words[grad->counts], grad->first_not_finite)
          : say(f, " The gradient norm went from %.4g to %.4g.", grad->first, grad->last);
  finding_add(
      f, SEVERITY_CRITICAL, NAN,
      say(f,
          finite ? "The loss diverged from %s %.0f on" : "The loss is not a number from %s %.0f on",
          series_count_words[loss->counts], c->diverged_step),
      finite ? say(f,
                   "\"%.60s\" began at %.5g, was %.5g at its best and ends at %.5g (medians of "
                   "tenths of %.0f values). From %s %.0f on it does not come back.%s",
                   loss->name, loss->first, loss->best, loss->last, loss->values,
                   series_count_words[loss->counts], c->diverged_step, norm)
             : say(f,
                   "\"%.60s\" is NaN or infinite in %.0f of %.0f values, first at %s %.0f; its "
                   "best was %.5g.%s",
                   loss->name, loss->not_finite, loss->values, series_count_words[loss->counts],
                   c->diverged_step, loss->best, norm),
      finite ? "Go back to a checkpoint before that; lower the learning rate or lengthen its "
               "warm-up, clip gradients, and look at the data of the steps before."
             : "Go back to a checkpoint before that. Look at the step before it: gradient norm, "
               "learning rate, data; in half precision check loss scaling, divisions and "
               "logarithms near 0 (torch.autograd.set_detect_anomaly names the operation).",
      c->diverged_ranks, c->n_diverged_ranks);
}

/* "120 (6.1 against 2.3), 300 (...)", the largest ones. */
static const char *list_spikes(const struct findings *f, enum signal_kind signal) {
  const struct convergence_result *c = &f->r->convergence;
  const char *text = "";
  u32 named = 0;
  for (u32 i = 0; i < c->n_spikes && named < MOST_NAMED; i++) {
    const struct convergence_spike *spike = &c->spikes[i];
    if (spike->signal != signal)
      continue;
    text = arena_list(f->arena, text, ", ", "%.0f (%.4g against %.4g)", spike->step, spike->value,
                      spike->typical);
    named++;
  }
  return text;
}

void rule_convergence_spikes(struct findings *f) {
  const struct convergence_result *c = &f->r->convergence;
  const struct convergence_series *loss = c->loss;
  if (!loss || loss->spikes < SPIKES_LEAST)
    return;
  const char *steps = list_spikes(f, SIGNAL_LOSS);
  finding_add(
      f, SEVERITY_WARNING, NAN, say(f, "The loss has %.0f spikes", loss->spikes),
      say(f,
          "\"%.60s\" stands out from the %u values before it by more than %.0f standard deviations "
          "and %s in %.0f of %.0f values: at %ss %s%s.",
          loss->name, SPIKE_NEAR, SPIKE_SCATTER, percent(SPIKE_SHARE_LOSS).text, loss->spikes,
          loss->values, series_count_words[loss->counts], steps,
          loss->spikes > MOST_NAMED ? ", ..." : ""),
      "Clip gradients (or lower the limit), lower the learning rate or the optimizer's beta2, look "
      "at the batches of those steps; skip batches whose gradient norm is far off.",
      NULL, 0);
}

void rule_convergence_plateau(struct findings *f) {
  const struct convergence_result *c = &f->r->convergence;
  const struct convergence_series *loss = c->loss;
  if (!loss || !c->plateau)
    return;
  finding_add(f, SEVERITY_INFO, NAN,
              say(f, "The loss has not fallen for %.0f %ss", c->plateau_steps,
                  series_count_words[loss->counts]),
              say(f,
                  "\"%.60s\" changed by %s over the last %.0f %ss (limit %s), around "
                  "%.5g; it began at %.5g.",
                  loss->name, signed_percent(-c->plateau_change).text, c->plateau_steps,
                  series_count_words[loss->counts], percent(PLATEAU_SHARE).text, loss->last,
                  loss->first),
              "Lower the learning rate if it is still high, or stop here. If evaluation still "
              "improves, there is nothing to do.",
              NULL, 0);
}

void rule_convergence_not_falling(struct findings *f) {
  const struct convergence_result *c = &f->r->convergence;
  const struct convergence_series *loss = c->loss;
  if (!loss || !c->not_falling)
    return;
  bool rises = c->not_falling == LOSS_RISES;
  finding_add(
      f, SEVERITY_WARNING, NAN,
      rises ? say(f, "The loss rises: %s over the run", signed_percent(c->whole_change).text)
            : "The loss has not moved since the start",
      say(f,
          "\"%.60s\" began at %.5g and ends at %.5g (medians of tenths of %.0f values, %ss "
          "%.0f to %.0f), %s; its lowest value is %.5g.",
          loss->name, loss->first, loss->last, loss->values, series_count_words[loss->counts],
          loss->first_step, loss->last_step, signed_percent(c->whole_change).text, loss->best),
      rises ? "Lower the learning rate; check the sign of the loss, that gradients are "
              "zeroed and scaled as they should be, and what the data of this run is."
            : "Check that the optimizer has the model's parameters, that they require "
              "gradients and get them (no detach, no_grad or frozen layers), that the "
              "learning rate is not 0, and that labels belong to their inputs.",
      NULL, 0);
}

void rule_correlated_instability(struct findings *f) {
  const struct convergence_result *c = &f->r->convergence;
  const struct convergence_cluster *most =
      LARGEST(c->clusters, c->n_clusters, one, true, one->n_signals);
  /* Three signals at once do not coincide by chance; for two, it depends on how often they do. */
  if (!most || (most->n_signals < 3 && !(c->instability_p < INSTABILITY_SIGNIFICANCE)))
    return;
  const char *text = "";
  for (u32 i = 0; i < c->n_clusters && i < MOST_NAMED; i++)
    text = arena_list(f->arena, text, "; ", "%.0f-%.0f (%s)", c->clusters[i].first_step,
                      c->clusters[i].last_step, c->clusters[i].signals);
  finding_add(f, SEVERITY_WARNING, NAN, say(f, "%s go wrong together", most->signals),
              say(f,
                  "Spikes of several signals lie within %.0f steps of each other %s, at "
                  "steps %s%s (by chance: %s).",
                  INSTABILITY_STEPS, plural(c->n_clusters, "time").text, text,
                  c->n_clusters > MOST_NAMED ? "; ..." : "", p_value(c->instability_p).text),
              "One cause is behind them: look at the batches of those steps first (very long, "
              "empty or damaged samples show in loss, gradient, time and memory alike), then at "
              "checkpoints or evaluation that run in them.",
              NULL, 0);
}
