/* SPDX-License-Identifier: MIT
 *
 * DATA.PARTIAL: each way in which the run was not completely seen, and what to do about it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "analyses/findings/newest_known.def"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "format/gpu_reasons.h"

/* "rank 2", "4 ranks", "2 of 8 ranks (1, 5)" */
static const char *describe_ranks_of_all(struct findings *f, const u32 *ranks, u32 n) {
  struct arena *arena = f->a->arena;
  if (n == f->a->model->n_ranks)
    return arena_text(arena, plural(n, "rank").text);
  const char *list = rank_list_in(arena, ranks, n);
  return n == 1 ? say(f, "rank %s", list)
                : say(f, "%u of %u ranks (%s)", n, f->a->model->n_ranks, list);
}

static void missing_ranks(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u32 n = model_missing_ranks(model, ranks);
  if (n == 0)
    return;
  finding_add(f, SEVERITY_CRITICAL, NAN,
              say(f, "%u of %u ranks %s not found", n, model->world_size, n == 1 ? "was" : "were"),
              say(f,
                  "No trace of %s. Their effect on the others was not seen: waits are lower "
                  "bounds; transfers are upper bounds, because they include the waits for these "
                  "ranks. Whether one of them keeps the others waiting is not known.",
                  ranks_in(f->a->arena, ranks, n)),
              model->recorder ? "Record on every rank, and give the files of all of them."
                              : "Gather the trace directories of all hosts into one, or point "
                                "TSCOPE_DIR at storage that all hosts share. If they are, those "
                                "ranks did not come so far as to train: read their logs.",
              ranks, n);
}

/* Files that are incomplete: what is wrong with them shows what was lost. */
static void damaged_ranks(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u32 n = LIST_WHERE(ranks, 0, model->n_ranks, i, model->ranks[i].damage || !f->a->ranks[i].loaded,
                     model->ranks[i].rank);
  const struct rank *damaged = FIND(model->ranks, model->n_ranks, one, one->damage);
  if (n == 0)
    return;
  finding_add(f, SEVERITY_WARNING, NAN,
              n == 1 ? "The trace of 1 rank is damaged"
                     : say(f, "The traces of %s are damaged", plural(n, "rank").text),
              say(f, "%s: %s. What is missing is unknown, not zero.",
                  ranks_first_in(f->a->arena, ranks, n),
                  damaged ? damaged->damage : "it could not be decoded"),
              "If the files were copied, copy them again after the job has ended; else look at the "
              "disk they were written to.",
              ranks, n);
}

static void cut_ranks(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  if (f->r->run_end.n_culprits) /* reported by RUN.ENDED_EARLY, which knows whose logs to read */
    return;
  u32 n = LIST_WHERE(ranks, 0, model->n_ranks, i, !model->ranks[i].closed, model->ranks[i].rank);
  if (n == 0)
    return;
  bool behind = ANY(model->ranks, model->n_ranks, one, one->last_moments_missing);
  u32 pending = NUMBER_OF(model->arrivals, model->n_arrivals, one, one->call_end == NS_UNKNOWN);
  u32 may_run = NUMBER_OF(model->ranks, model->n_ranks, one, one->may_run);
  if (NUMBER_OF(model->ranks, model->n_ranks, one, one->running) + may_run == n) {
    const char *elsewhere =
        may_run ? say(f,
                      " %u of them on other hosts cannot be seen from here: within two minutes "
                      "before, they were alive.",
                      may_run)
                : "";
    finding_add(f, SEVERITY_INFO, NAN,
                say(f, "The run %s: this is what it did until now",
                    may_run ? "may still run" : "still runs"),
                say(f, "%s had not ended when %s read.%s", plural(n, "rank").text,
                    n == 1 ? "the trace was" : "the traces were", elsewhere),
                "tscope top shows what it does now; the report is complete when it has ended.",
                ranks, n);
    return;
  }
  const char *inside =
      pending ? say(f, " %s never returned.", plural(pending, "collective call").text) : "";
  finding_add(f, SEVERITY_WARNING, NAN, say(f, "%s did not end normally", plural(n, "rank").text),
              say(f,
                  "%s: the trace was never closed, so the process was killed or is still "
                  "running.%s%s",
                  ranks_first_in(f->a->arena, ranks, n), inside,
                  behind ? " The last moments may be missing (up to 100 ms)." : ""),
              "If the job was not stopped on purpose, read the last lines of those ranks' logs "
              "(out of memory, signals). This report shows what they recorded until then.",
              ranks, n);
}

/* What can be done against the loss of records for this reason. */
static const char *remedy_of_loss(u32 reason) {
  switch (reason) {
  case TSCOPE_LOSS_RING:
    return "Raise the disk limit to keep more details of the run. Collectives, steps and phases "
           "are all kept in any case.";
  case TSCOPE_LOSS_STREAMS:
    return "The job has more than 65,535 GPU streams at one time: destroy those that are no longer "
           "used. The work on the others is kept, but not on which stream it ran.";
  case TSCOPE_LOSS_SHAPES:
  case TSCOPE_LOSS_STRINGS:
    return "Nothing has to be done: the calls themselves are kept, but for some of them the grid, "
           "the block or a name is not known.";
  case TSCOPE_LOSS_STACKS:
    return "Nothing has to be done: the calls themselves are kept, but of some the line is not "
           "known. A program that runs code which it makes itself has ever new lines.";
  case TSCOPE_LOSS_GROUPS:
    return "The process has more process groups or collectives of gloo under way at one time, or a "
           "backward pass more buckets, than the table holds: collectives or waits of the others "
           "were not seen. Destroy groups that are no longer used.";
  case TSCOPE_LOSS_RANGES:
    return "More ranges are open at one time than the table holds: look for ranges that are never "
           "closed.";
  case TSCOPE_LOSS_GRAPHS:
    return "The process has more CUDA graphs, or a graph more communicators, than the table holds: "
           "what replays of the others do is not known. Destroy graphs that are no longer used.";
  case TSCOPE_LOSS_THREADS:
    return "The process has more threads at one time than the table holds: what the others did was "
           "not seen.";
  default:
    return "Give the trace directory more space and a fast local disk, then measure again.";
  }
}

static void lost_records(struct findings *f, u32 *ranks) {
  const struct model *model = f->a->model;
  u64 by_reason[TSCOPE_LOSS_REASONS] = {0}, sum = 0;
  u32 n = 0, overwritten = analysis_sums(f->a).steps_overwritten;
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    for (u32 k = 0; k < TSCOPE_LOSS_REASONS; k++)
      by_reason[k] += rank->lost[k];
    if (ANY(rank->lost, TSCOPE_LOSS_REASONS, one, *one))
      ranks[n++] = rank->rank;
  }
  FOR_EACH(by_reason, TSCOPE_LOSS_REASONS, each)
    sum += *each;
  if (sum == 0)
    return;
  u32 most = NUMBER_OF_LARGEST(0, TSCOPE_LOSS_REASONS, k, (double)by_reason[k]);
  /* The ring drops the oldest detail by design; the steps that still have their detail are
   * complete. */
  bool only_ring = by_reason[TSCOPE_LOSS_RING] == sum;
  double share = (double)sum / ((double)sum + f->r->events);
  finding_add(f, only_ring ? SEVERITY_INFO : SEVERITY_WARNING, NAN,
              say(f, "%s of the events were not kept", percent(share).text),
              say(f,
                  "%llu of %.0f events on %s; most: %s. Because of it, %.3g steps per rank, mean "
                  "over these, are left out of overlap and budget.",
                  (unsigned long long)sum, (double)sum + f->r->events, plural(n, "rank").text,
                  loss_word(most), (double)overwritten / n),
              remedy_of_loss(most), ranks, n);
}

/* Ranks with calls, collectives or launches, of which none has the time when it ran. */
struct untimed {
  u64 calls, collective_runs;
  u32 n;           /* ranks */
  const char *on;  /* these in words */
  const char *why; /* NULL: not recorded */
};

static struct untimed find_untimed(struct findings *f, bool collectives, u32 *ranks) {
  const struct model *model = f->a->model;
  struct untimed of = {0};
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    u64 calls = collectives ? rank->collective_calls : rank->launches;
    if (calls == 0 || (collectives ? rank->collective_runs : rank->gpu_kernels) > 0)
      continue;
    of.calls += calls;
    of.collective_runs += rank->collective_runs;
    of.why = of.why ? of.why : gpu_timing_reason(model, rank);
    ranks[of.n++] = rank->rank;
  }
  of.on = describe_ranks_of_all(f, ranks, of.n);
  return of;
}

static void unseen_collectives(struct findings *f, u32 *ranks) {
  struct untimed of = find_untimed(f, true, ranks);
  bool some = of.n < f->a->model->n_ranks;
  if (of.n == 0)
    return;
  finding_add(f, SEVERITY_CRITICAL, NAN,
              say(f, "COMMUNICATION TIMES ARE MISSING%s%s", some ? " ON " : "", some ? of.on : ""),
              say(f, "%s on %s; none has the time when it ran%s. %s",
                  plural((double)of.calls, "collective call").text, of.on, say_why(f, of.why),
                  f->r->ov_ranks > 0 ? "Their communication is UNKNOWN, not zero: overlap, waits "
                                       "and exposed communication are means over the other ranks, "
                                       "and which rank arrives last is not known."
                                     : "Exposed communication is UNKNOWN, not zero."),
              gpu_timing_remedy(f->a->model, of.why), ranks, of.n);
}

static void unseen_kernels(struct findings *f, u32 *ranks) {
  struct untimed of = find_untimed(f, false, ranks);
  bool some = of.n < f->a->model->n_ranks;
  if (of.n == 0)
    return;
  finding_add(f, SEVERITY_WARNING, NAN,
              say(f, "GPU times of %s are missing%s%s",
                  of.collective_runs ? "all work but collectives" : "kernels", some ? " on " : "",
                  some ? of.on : ""),
              say(f, "%s on %s; none has the time when it ran%s.",
                  plural((double)of.calls, "launch").text, of.on, say_why(f, of.why)),
              gpu_timing_remedy(f->a->model, of.why), ranks, of.n);
}

/* Steps for which not all GPU work was seen. A process that was killed has its own finding. */
static void unseen_steps(struct findings *f) {
  struct analysis *a = f->a;
  double kept = 0, unseen = 0, untimed = 0, of_others = 0;
  const char *why = gpu_timing_why_not_watched(a);
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    bool known = rank->has_compute && rank->has_comm;
    kept += known ? rank->steps : 0;
    unseen += known ? rank->steps_unseen : 0;
    of_others += known && a->model->ranks[i].closed ? rank->steps_unseen + rank->steps_untimed : 0;
    untimed += known ? rank->steps_untimed : 0;
  }
  if (a->whole_run || of_others == 0)
    return;
  double share = kept / (kept + unseen + untimed);
  finding_add(f, kept > 0 ? SEVERITY_INFO : SEVERITY_WARNING, NAN,
              kept > 0 ? say(a, "GPU work is known for %s of the steps", percent(share).text)
                       : "THE GPU WORK OF NO STEP IS KNOWN",
              say(a,
                  "Steps counted on each rank: %.0f of %.0f; %.0f were not recorded from begin to "
                  "end%s; %.0f have collectives with unknown times. Communication, overlap and "
                  "the critical path are those of the other steps.",
                  kept, kept + unseen + untimed, unseen, say_why(a, unseen > 0 ? why : NULL),
                  untimed),
              unseen >= untimed && kept > 0 && tscope_gpu_reason_of(why) == TSCOPE_GPU_REASON_STEPS
                  ? "This is because of TSCOPE_GPU_STEPS; unset it to record all steps."
              : unseen >= untimed ? gpu_timing_remedy(a->model, why)
              : analysis_sums(a).graph_launches
                  ? "Let CUPTI report the kernels of CUDA graphs: leave TSCOPE_GPU_GRAPHS unset."
                  : "Records of collectives are missing. First do what the other findings say "
                    "about lost records and damaged traces.",
              NULL, 0);
}

static const char record_all[] =
    "Record a part of the run that has collectives over all ranks, and record all ranks.";

static void clocks_of_some_ranks(struct findings *f) {
  const struct model *model = f->a->model;
  u32 *ranks = arena_array(f->a->arena, model->n_ranks, sizeof(*ranks));
  u32 n =
      LIST_WHERE(ranks, 0, model->n_ranks, i, !model->ranks[i].clock.aligned, model->ranks[i].rank);
  finding_add(f, SEVERITY_WARNING, NAN,
              say(f, "%s of %s could not be aligned with the others'",
                  n == 1 ? "The clock" : "The clocks", ranks_in(f->a->arena, ranks, n)),
              say(f,
                  "Clock alignment: %s. When %s came to collectives is compared with nobody, the "
                  "critical path is that of the other %u ranks, and waits in collectives with %s "
                  "are derived from the shortest member.",
                  model->clock_method, n > 1 ? "these ranks" : "this rank", model->n_ranks - n,
                  n > 1 ? "them" : "it"),
              record_all, ranks, n);
}

static void unaligned_clocks(struct findings *f) {
  const struct model *model = f->a->model;
  /* Records that have lengths only join nothing: what is missing is undecided. */
  if (model_all_aligned(model) || model->n_ranks < 2 || model->lengths_only)
    return;
  if (model->clock_aligned) {
    clocks_of_some_ranks(f);
    return;
  }
  finding_add(f, SEVERITY_WARNING, NAN, "The ranks' clocks could not be aligned",
              say(f,
                  "Clock alignment: %s. There is no critical path across the %u ranks. Waits are "
                  "derived from the shortest member of each collective.",
                  model->clock_method ? model->clock_method : "not known", model->n_ranks),
              record_all, NULL, 0);
}

/* A library that is newer than all whose functions were looked through. */
static void newer_libraries(struct findings *f) {
  static const struct {
    enum tscope_info fact;
    const char *name;
    int major, minor;
  } known[] = {
#define X(fact_, name_, major_, minor_) {TSCOPE_INFO_##fact_, name_, major_, minor_},
      TSCOPE_NEWEST_KNOWN(X)
#undef X
  };
  const struct model *model = f->a->model;
  FOR_EACH(known, LENGTH_OF(known), one) {
    const char *newest = NULL;
    for (u32 i = 0; i < model->n_ranks && !newest; i++) {
      const char *text = model->ranks[i].info[one->fact];
      int major, minor;
      if (text && sscanf(text, "%d.%d", &major, &minor) == 2 &&
          (major > one->major || (major == one->major && minor > one->minor)))
        newest = text;
    }
    if (newest)
      finding_add(f, SEVERITY_INFO, NAN,
                  say(f, "%s is newer than the newest that tscope knows", one->name),
                  say(f,
                      "The job uses version %s; every function of %d.%d was looked through. Calls "
                      "of functions that came later are not recorded.",
                      newest, one->major, one->minor),
                  "Look for a newer tscope if communication or GPU work is missing in this report.",
                  NULL, 0);
  }
}

/* Functions that a loaded library exports and that tscope does not know: "library=names" in lines.
 */
static void unknown_functions(struct findings *f) {
  const struct model *model = f->a->model;
  const struct rank *rank =
      FIND(model->ranks, model->n_ranks, one, one->info[TSCOPE_INFO_UNKNOWN_FUNCTIONS]);
  if (!rank)
    return;
  const char *lines = rank->info[TSCOPE_INFO_UNKNOWN_FUNCTIONS];
  struct named_value library;
  if (!next_named_value(&lines, &library) || !library.value)
    return;
  finding_add(f, SEVERITY_INFO, NAN,
              say(f, "%.*s has functions that tscope does not know", library.of_name, library.name),
              say(f,
                  "By their names they start GPU work or communicate: %.*s. If the job calls them, "
                  "the calls are not recorded; of their work the GPU clock alone tells.",
                  library.of_value, library.value),
              "Look for a newer tscope if communication or GPU work is missing in this report.",
              NULL, 0);
}

void rule_partial_data(struct findings *f) {
  const struct model *model = f->a->model;
  u32 *ranks = arena_array(f->a->arena, size_sum(model->n_ranks, model->world_size), sizeof(u32));
  missing_ranks(f, ranks);
  damaged_ranks(f, ranks);
  cut_ranks(f, ranks);
  lost_records(f, ranks);
  unseen_collectives(f, ranks);
  unseen_kernels(f, ranks);
  unseen_steps(f);
  newer_libraries(f);
  unknown_functions(f);
  unaligned_clocks(f);
}
