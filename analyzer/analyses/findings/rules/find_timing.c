/* SPDX-License-Identifier: MIT
 *
 * Training that waits for its input, and phases that take more than their share.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/texts.h"

/* Time per step in which a rank did nothing but wait for its input; NAN if not known. */
static double input_stall_ms(const struct findings *f, u32 rank) {
  const struct rank_summary *sum = &f->a->ranks[rank];
  if (!sum->has_input || !rank_overlap_known(sum))
    return NAN;
  return ns_to_ms(sum->data_stall) / sum->steps;
}

void rule_dataloader_bound(struct findings *f) {
  const struct results *r = f->r;
  double sum = 0, worst_ms = 0, limit = WORTH_MENTIONING * f->step_ms;
  u32 n = 0, stalled = 0, worst = 0;
  u32 *ranks = arena_array(f->a->arena, r->n_ranks, sizeof(u32));
  for (u32 i = 0; i < r->n_ranks; i++) {
    double ms = input_stall_ms(f, i);
    if (isnan(ms))
      continue;
    sum += ms;
    n++;
    if (r->ranks[i].straggler && r->ranks[i].reason == STRAGGLER_SLOW_INPUT)
      continue; /* its input, and nobody else's: the straggler's finding says so */
    if (ms > worst_ms) {
      worst_ms = ms;
      worst = i;
    }
    if (ms >= limit)
      ranks[stalled++] = r->ranks[i].rank;
  }
  /* If one rank stalls, all stall: one is enough, where it is not named by itself. */
  if (!stalled || f->step_ms <= 0)
    return;
  double mean = sum / n;
  double saving = saving_of(f, what_if_cure(f, WHAT_IF_INPUT, -1), worst_ms);
  double gain = cure_pays(f) ? per_step_of(f, saving) : worst_ms;
  const struct sampled_line *line = r->ranks[worst].input_line;
  const char *at = describe_where(
      f, line && line->in_workers ? "Its data loader workers are" : "It is then", line);
  finding_add(f, severity_of(f, gain), saving,
              say(f, "Training waits for its input: %s of %s%s", percent(gain / f->step_ms).text,
                  of_each_step(f), at_line(f, ",", line)),
              say(f,
                  "Rank %u spends %s of a %s step in the data phase while nothing else runs; mean "
                  "over ranks %s; %u of %u ranks above %g %%.%s%s",
                  r->ranks[worst].rank, duration_ms(worst_ms).text, duration_ms(f->step_ms).text,
                  duration_ms(mean).text, stalled, n, 100 * WORTH_MENTIONING, at,
                  path_describe_loader(f->a, worst)),
              "Prepare batches ahead: more DataLoader workers (num_workers), prefetch_factor, "
              "persistent_workers, pin_memory; move decoding out of the training process; keep the "
              "data on faster storage.",
              ranks, stalled);
}

/* The time outside the phases that more than half of the ranks have: what only one of two does is
 * that rank's finding. The rank, of those that are no stragglers, whose line there takes longest.
 */
static u32 common_outside(const struct findings *f, double *ms) {
  const struct rank_result *best = LARGEST(
      f->r->ranks, f->r->n_ranks, one, one->outside_line && !one->straggler, one->outside_line->ms);
  *ms = phase_of_middle_rank_ms(f->a, PHASE_OTHER);
  return best ? (u32)(best - f->r->ranks) : 0;
}

/* How long the rank is outside the phases that is so longest, mean over steps: no more of a step
 * can go with that time. The other ranks may wait for another one in each step; one without phases
 * is outside for all of it. `alone`: the rank that is so much longer than all others for most of
 * what any one is; INDEX_NONE if they are so by turns, or it may be one without phases. */
static double longest_outside_ms(const struct findings *f, u32 *alone) {
  const struct analysis *a = f->a;
  double sum = 0, beyond = 0;
  u32 n = 0, ranks = a->model->n_ranks;
  double *of_rank = arena_array(a->arena, ranks, sizeof(*of_rank));
  for (u32 step = a->first_step; step < a->model->steps.n; step++) {
    const struct phase_times *phases = &a->model->phases[(size_t)step * ranks];
    i64 longest = NS_UNKNOWN, second = 0, whole = 0;
    u32 who = 0;
    for (u32 rank = 0; rank < ranks && analysis_is_training(a, step); rank++) {
      if (f->r->ranks[rank].straggler)
        continue;
      i64 begin = a->model->steps.begin[(size_t)step * ranks + rank],
          end = a->model->steps.end[(size_t)step * ranks + rank];
      if (phases[rank].other == NS_UNKNOWN && begin != NS_UNKNOWN && end - begin > whole)
        whole = end - begin;
      i64 shorter = MIN(phases[rank].other, longest);
      second = MAX(shorter, second);
      who = phases[rank].other > longest ? rank : who;
      longest = MAX(phases[rank].other, longest);
    }
    if (longest == NS_UNKNOWN)
      continue;
    i64 marked = longest - MAX(second, whole);
    sum += ns_to_ms(MAX(longest, whole));
    of_rank[who] += marked > 0 ? ns_to_ms(marked) : 0;
    beyond += ns_to_ms(marked > 0 ? marked : -marked);
    n++;
  }
  *alone = NUMBER_OF_LARGEST(0, ranks, i, of_rank[i]);
  *alone = of_rank[*alone] >= EQUALS_SHARE * beyond ? *alone : INDEX_NONE;
  return n ? sum / n : NAN;
}

/* The longest stay of a rank outside the phases at another line than `line`, at least half as long;
 * INDEX_NONE. */
static u32 elsewhere_outside(const struct results *r, const struct sampled_line *line) {
  const struct rank_result *best = LARGEST(r->ranks, r->n_ranks, one,
                                           one->outside_line && !one->straggler &&
                                               strcmp(one->outside_line->place, line->place) != 0 &&
                                               one->outside_line->ms >= REASON_SHARE * line->ms,
                                           one->outside_line->ms);
  return best ? (u32)(best - r->ranks) : INDEX_NONE;
}

/* " Rank 2 is then at wait.py:14 (load) for 73 % of the time in which it does not wait; rank 0 at
 * make.py:12 (batch) for 97 %." */
static const char *describe_outside_line(struct findings *f, u32 rank, u32 elsewhere) {
  const struct rank_result *one = &f->r->ranks[rank];
  const struct sampled_line *line = one->outside_line;
  if (!line)
    return "";
  const char *text = say(
      f, " Rank %u is then %s for %s of the time in which it does not wait for communication%s%s",
      one->rank, say_place(f, line), percent(line->share).text,
      line->beside || line->waits ? busy_with(f, line) : "", say_inside(f, line));
  if (elsewhere == INDEX_NONE)
    return say(f, "%s.", text);
  const struct rank_result *other = &f->r->ranks[elsewhere];
  return say(f, "%s; rank %u %s for %s.", text, other->rank, say_place(f, other->outside_line),
             percent(other->outside_line->share).text);
}

static const char *outside_action(struct findings *f, u32 rank, u32 elsewhere) {
  const struct sampled_line *line = f->r->ranks[rank].outside_line;
  if (!line)
    return "Look at what the training loop does between forward, backward and optimizer: logging, "
           "metrics, input, checkpoints. Do it less often, or in another thread or process.";
  if (line->beside)
    return say(f, "Look at what another thread does at %s: rank %u waits for it at %s.",
               line->beside, f->r->ranks[rank].rank, line->place);
  if (line->waits && elsewhere == INDEX_NONE)
    return say(f,
               "Look at what rank %u waits for at %s: another process, a queue, a store or a "
               "server. Make that faster, have more of it, or ask for it ahead.",
               f->r->ranks[rank].rank, line->place);
  const char *others =
      elsewhere == INDEX_NONE
          ? ""
          : say(f,
                " If ranks wait there for another rank, for a file, a store or a server, look at "
                "what that one does: rank %u is at %s.",
                f->r->ranks[elsewhere].rank, f->r->ranks[elsewhere].outside_line->place);
  return say(f,
             "Look at %s first. Do that work less often, or prepare it ahead in another thread or "
             "process.%s",
             line->place, others);
}

/* What is said of the time outside the phases. */
struct outside {
  double ms;        /* that more than half of the ranks have, without training that is not marked */
  double unmarked;  /* that training's share of all time in no phase; 0 where none is known */
  double longest;   /* of the rank that is so longest in a step */
  double gain;      /* ms a step that a replay without it saves */
  bool by_turns;    /* more than the Phases show: the others wait for one rank, or each by turns */
  u32 alone;        /* that one rank; INDEX_NONE */
  u32 rank;         /* whose line is told */
  u32 elsewhere;    /* another one at another line; INDEX_NONE */
  bool has_forward; /* the job marks its forward passes */
};

static const char *describe_unmarked(struct findings *f, const struct outside *o) {
  if (o->unmarked > 0)
    return say(f,
               " %s%s of what is in no phase is training by samples (inside modules, or a "
               "framework's own backward pass or step), and not counted here.",
               o->has_forward ? "" : "The job does not mark its forward passes: ",
               percent(o->unmarked).text);
  return o->has_forward ? ""
                        : " The job does not mark its forward passes, and no sample tells them: "
                          "they are in it.";
}

static const char *outside_title(struct findings *f, const struct outside *o) {
  const struct sampled_line *line = f->r->ranks[o->rank].outside_line;
  const char *whose = !o->by_turns ? ""
                      : o->alone == INDEX_NONE
                          ? "what one rank or another does "
                          : say(f, "what rank %u does ", f->r->ranks[o->alone].rank);
  return say(f, "%s of %s is %soutside %s and optimizer%s%s", percent(o->gain / f->step_ms).text,
             of_each_step(f), whose,
             o->has_forward || o->unmarked > 0 ? "forward, backward" : "backward",
             at_line(f, line && line->share < REASON_SHARE ? ", longest" : ", mostly", line),
             line && line->beside ? ", waiting for another thread" : "");
}

static const char *outside_evidence(struct findings *f, const struct outside *o) {
  const char *turns = o->by_turns ? say(f,
                                        " The one that is so longest in a step is for %s, and the "
                                        "job is as slow as that one.",
                                        duration_ms(o->longest).text)
                                  : "";
  const char *waits =
      o->gain < 0.9 * o->ms
          ? say(f,
                " Part of that is waiting for communication or for other ranks: without "
                "the rest the step is %s shorter.",
                duration_ms(o->gain).text)
          : "";
  return say(f,
             "The program is in no phase of training for %s of a %s step, or longer, on most "
             "ranks.%s%s%s%s",
             duration_ms(o->ms).text, duration_ms(f->step_ms).text, turns, waits,
             describe_unmarked(f, o), describe_outside_line(f, o->rank, o->elsewhere));
}

void rule_outside_phases(struct findings *f) {
  const struct results *r = f->r;
  struct outside o = {.unmarked = lines_unmarked_training(f->a), .has_forward = r->forward_ms > 0};
  if (f->a->whole_run || !f->a->model->phases ||
      !(o.has_forward || r->backward_ms > 0 || r->optimizer_ms > 0))
    return;
  o.rank = common_outside(f, &o.ms);
  o.ms *= 1 - o.unmarked;
  double measured = without_waits_for_gpu(f, fmin(o.ms, f->step_ms - r->ov_exposed_ms));
  o.longest = longest_outside_ms(f, &o.alone) * (1 - o.unmarked);
  double saving = fmin(saving_beyond_stragglers(f, what_if_cure(f, WHAT_IF_OUTSIDE, -1), measured),
                       run_seconds(f, o.longest));
  o.gain = per_step_of(f, saving);
  if (!is_notable(f, o.gain))
    return;
  o.by_turns = o.gain > r->other_ms * (1 - o.unmarked) + REPLAY_TOLERANCE * f->step_ms;
  o.rank = o.by_turns && o.alone != INDEX_NONE ? o.alone : o.rank;
  const struct sampled_line *line = r->ranks[o.rank].outside_line;
  bool replayed = r->n_what_if && !r->what_if_reason;
  if (!o.has_forward && !(o.unmarked > 0) && !(line && replayed))
    return; /* forward passes may be all of it, or hidden behind what the GPU does */
  o.elsewhere = line ? elsewhere_outside(r, line) : INDEX_NONE;
  f->spent_at = line && line->share >= REASON_SHARE ? line : NULL;
  finding_add(f, severity_of(f, o.gain), saving, outside_title(f, &o), outside_evidence(f, &o),
              outside_action(f, o.rank, o.elsewhere), NULL, 0);
}

/* Whether the times of phases, which are the host's, are also the times of the work itself. */
static bool host_computes(const struct findings *f) {
  return f->r->n_ranks > 0 && ALL(f->a->ranks, f->r->n_ranks, one, one->loaded && !one->on_gpu);
}

void rule_backward_heavy(struct findings *f) {
  const struct results *r = f->r;
  double exposed = MAX(r->ov_exposed_ms, 0), own = r->backward_ms - exposed;
  if (!host_computes(f) || !(own >= BACKWARD_OVER_FORWARD * r->forward_ms) ||
      !(own >= BACKWARD_OF_STEP * f->step_ms) || !(r->forward_ms > 0))
    return;
  double usual = own - BACKWARD_OVER_FORWARD / 2 * r->forward_ms;
  double saving = saving_of_change(f,
                                   (struct cure_change){.kind = CHANGE_PHASE,
                                                        .which = TSCOPE_PHASE_BACKWARD,
                                                        .left = 1 - usual / own},
                                   usual);
  finding_add(f, SEVERITY_WARNING, saving,
              say(f, "Backward takes %.1f times as long as forward", own / r->forward_ms),
              say(f,
                  "Backward %s without exposed communication, forward %s, step %s. Twice forward "
                  "is usual, three times with recomputed activations.",
                  duration_ms(own).text, duration_ms(r->forward_ms).text,
                  duration_ms(f->step_ms).text),
              "Profile the operators of one backward: custom autograd functions, anomaly detection "
              "left on, find_unused_parameters, more recomputation than memory needs.",
              NULL, 0);
}

/* The optimizer's share of the step, and what the share is of; NAN if it is not known. Where one
 * rank waits in its optimizer, such as for the GIL, that is no work of the optimizer. */
static double optimizer_share(const struct findings *f, const char **of) {
  const struct results *r = f->r;
  *of = "of the step is in the optimizer's phase";
  if (host_computes(f))
    return phase_of_middle_rank_ms(f->a, TSCOPE_PHASE_OPTIMIZER) / f->step_ms;
  *of = "of the time of all kernels is in the optimizer's";
  const struct kernel_category_result *optimizer = find_category(r, KERNEL_OPTIMIZER);
  return optimizer ? optimizer->share : NAN;
}

void rule_optimizer_heavy(struct findings *f) {
  const char *of;
  double share = optimizer_share(f, &of);
  if (!(share >= OPTIMIZER_OF_STEP))
    return;
  double ms = share * (host_computes(f) ? f->step_ms : f->r->ov_compute_ms);
  double saving = saving_of_change(
      f, (struct cure_change){.kind = CHANGE_PHASE, .which = TSCOPE_PHASE_OPTIMIZER, .left = 0.5},
      ms / 2);
  finding_add(f, SEVERITY_WARNING, saving,
              say(f, "The optimizer takes %s of the work", percent(share).text),
              say(f, "%s %s: %s a step. Its saving here is half of that.", percent(share).text, of,
                  duration_ms(ms).text),
              "Use a fused optimizer (fused=True, or foreach), shard its states over ranks, or "
              "accumulate gradients over more micro-batches so that it runs less often.",
              NULL, 0);
}
