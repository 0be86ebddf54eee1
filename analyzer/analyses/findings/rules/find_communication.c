/* SPDX-License-Identifier: MIT
 *
 * Transfers that compute does not hide: because there is too little compute, or because it could
 * hide them and does not.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"
#include "base/texts.h"

struct exposed {
  double transfer_ms, compute_ms, all_transfer_ms;
  const struct overlap_by_op *worst;
  const struct collective_result *kind; /* costliest of that op, NULL if not known */
  bool lacking;                         /* ranks were recorded in less than others */
  const char *missing; /* what is said of ranks without a record of their part; NULL */
};

#define LACKING_MEMBERS 0.05 /* of the collectives */

/* Whether many collectives lack a member that others of their communicator have, or that it should
 * have, as all ranks were found: recordings of fewer steps, or without work of the device. Waiting
 * for who was not recorded looks like a transfer. */
static bool lack_members(const struct findings *f) {
  const struct model *model = f->a->model;
  u32 lacking = 0, all = 0, *most = arena_array(f->a->arena, model->n_comms, sizeof(*most));
  for (u32 comm = 0; comm < model->n_comms && !model_lacks_ranks(model); comm++)
    most[comm] = model->comms[comm].size;
  for (u32 pass = 0; pass < 2; pass++)
    FOR_EACH(model->collectives, model->n_collectives, one) {
      if (one->comm == INDEX_NONE || !op_is_barrier_like(one->op))
        continue;
      most[one->comm] = MAX(one->n_arrivals, most[one->comm]);
      all += pass;
      lacking += pass && one->n_arrivals < most[one->comm];
    }
  return lacking > LACKING_MEMBERS * all;
}

/* Of steps that compute mostly fills, or transfers. False when exposed transfers are not worth
 * mentioning or not known, and in the other kind of steps. */
static bool find_exposed_transfers(struct findings *f, bool mostly_compute, struct exposed *e) {
  const struct results *r = f->r;
  memset(e, 0, sizeof(*e));
  /* What is exposed because ranks come late is not communication's: of the wait, and of transfers
   * that would be hidden if they came together. */
  double late_ms = fmax(0, r->ov_exposed_late_ms - r->ov_exposed_wait_ms);
  e->transfer_ms = fmax(0, r->ov_exposed_transfer_ms - (isnan(late_ms) ? 0 : late_ms));
  e->compute_ms = r->ov_compute_ms;
  e->all_transfer_ms = r->ov_comm_ms - r->ov_exposed_wait_ms;
  e->worst = LARGEST(r->by_op, r->n_by_op, one, true, one->exposed_transfer_ms);
  if (e->worst)
    e->kind = FIND(r->collectives, r->n_collectives, one,
                   one->op_id == e->worst->op_id && one->transfer_ms > 0);
  if (!e->worst || !is_notable(f, e->transfer_ms) ||
      (e->all_transfer_ms <= e->compute_ms) != mostly_compute)
    return false;
  e->lacking = lack_members(f);
  bool not_found = model_lacks_ranks(f->a->model);
  e->missing =
      not_found || e->lacking
          ? say(f, "%s%s",
                not_found ? " This includes waiting for the ranks that were not found." : "",
                e->lacking ? " This includes waiting for ranks of which less was recorded, "
                             "so no saving is given."
                           : "")
          : NULL;
  return true;
}

/* What the mean rank has exposed is not what a step would be shorter by: the transfers of several
 * ranks can follow each other, and those of one can run while all wait for another. Where the steps
 * were replayed, that alone is told as a share of the step. */
static const char *describe_gain(struct findings *f, const struct exposed *e, const char *without,
                                 double gain_ms) {
  if (!f->cure.n || e->missing)
    return NULL;
  return say(f, "If %s, %s of %s would take %s less (replay of the steps).", without, a_step(f),
             duration_ms(f->step_ms).text, duration_ms(gain_ms).text);
}

static const char *describe_kind(struct findings *f, const struct exposed *e, const char *gain) {
  const struct collective_result *kind = e->kind;
  const char *most =
      kind ? say(f, "; most in %s of %s on %s (%s each, bus bandwidth %s)", kind->op,
                 byte_size(kind->bytes).text, kind->comm, duration_ms(kind->transfer_ms).text,
                 bandwidth(kind->busbw_gbps).text)
           : say(f, "; most in %s", e->worst->op);
  const char *share = say(f, " (%s of %s)", percent(e->transfer_ms / f->step_ms).text,
                          f->a->whole_run ? "the run" : "the step");
  const char *who = gain ? say(f, "%s On the mean rank transfers", gain) : "Transfers";
  return say(f, "%s take %s %s, compute %s; %s of transfer%s run while nothing computes%s.%s%s",
             who, duration_ms(e->all_transfer_ms).text, per_step(f),
             duration_ms(e->compute_ms).text, duration_ms(e->transfer_ms).text, gain ? "" : share,
             most, kind ? describe_hosts_of(f, kind) : "", text_or_empty(e->missing));
}

/* What helps where the time is that of the calls and not of what they send; NULL elsewhere. */
static const char *remedy_of_calls(struct findings *f, const struct exposed *e) {
  if (e->worst->op_id == TSCOPE_OP_BARRIER)
    return "Leave out the barriers that nothing needs: at the next collective the ranks wait for "
           "each other anyway. Around files that ranks share, and to measure time, a few are "
           "enough.";
  if (!serves(f) && e->kind && e->kind->bytes > 0 && e->kind->bytes <= SMALL_CALL_BYTES)
    return say(f,
               "Call %s less often, or once for several values: for %s each, it is the call that "
               "takes the time, not the bytes.",
               e->kind->op, byte_size(e->kind->bytes).text);
  return NULL;
}

/* Nothing is promised where waits are in it for ranks of which less was recorded. */
static void add_transfers_finding(struct findings *f, const struct exposed *e, double gain,
                                  double saving, const char *title, const char *without,
                                  const char *remedy) {
  const char *of_calls = remedy_of_calls(f, e);
  const char *evidence = describe_kind(f, e, describe_gain(f, e, without, gain));
  if (!is_notable(f, gain))
    return;
  if (e->lacking)
    f->cure = (struct cure){0};
  finding_add(f, e->lacking ? SEVERITY_WARNING : severity_of(f, gain), e->lacking ? NAN : saving,
              title, evidence, of_calls ? of_calls : remedy, NULL, 0);
}

void rule_comm_bound(struct findings *f) {
  struct exposed e;
  if (!find_exposed_transfers(f, false, &e))
    return;
  double saving = saving_of(f, what_if_cure(f, WHAT_IF_COMMUNICATION, -1), e.transfer_ms);
  double gain = e.missing ? e.transfer_ms : per_step_of(f, saving);
  add_transfers_finding(
      f, &e, gain, saving,
      say(f,
          e.missing
              ? "Communication, including waits for ranks without a record of it, takes %s of %s"
              : "Communication is the bottleneck: %s of %s",
          percent(gain / f->step_ms).text, of_each_step(f)),
      "transfers took no time",
      serves(f) ? "Send less, or over faster links: all-reduces over NVLink's multicast or "
                  "fused with the norm, fewer ranks a model, activations of fewer bits. "
                  "Compare the bus bandwidth with that of the links."
                : "Send less or less often: larger batch or gradient accumulation, bf16 or "
                  "compressed gradients, sharding that keeps heavy traffic inside a node. "
                  "Compare the bus bandwidth with that of the links.");
}

/* If waiting cannot be separated from transfer, as in the trace of a single rank, the finding says
 * what is known: how much communication is exposed. How much of that can be saved is not, so it
 * does not come before what is. */
static void add_whole_comm_finding(struct findings *f) {
  const struct results *r = f->r;
  const struct model *model = f->a->model;
  const struct overlap_by_op *worst = LARGEST(r->by_op, r->n_by_op, one, true, one->exposed_ms);
  double exposed = r->ov_exposed_ms;
  if (!worst || !is_notable(f, exposed))
    return;
  bool some = model->n_ranks == 1 || model_lacks_ranks(model);
  const char *why = model_lacks_ranks(model)
                        ? say(f, "%u of %u ranks are here", model->n_ranks, model->world_size)
                    : model->n_ranks == 1       ? "the traces of the other ranks are not here"
                    : !model_all_aligned(model) ? "the ranks are not on one time axis"
                                                : "the start of some transfers is not known";
  finding_add(
      f, SEVERITY_WARNING, NAN,
      say(f, "%s of %s is exposed communication, waiting included",
          percent(exposed / f->step_ms).text, of_each_step(f)),
      say(f,
          "%s of %s of communication %s run while nothing computes, %s of that in %s; compute "
          "takes %s. How much of it is waiting for other ranks and how much is transfer is not "
          "known: %s.",
          duration_ms(exposed).text, duration_ms(r->ov_comm_ms).text, per_step(f),
          duration_ms(worst->exposed_ms).text, worst->op, duration_ms(r->ov_compute_ms).text, why),
      say(f, "%sStart %s earlier, so that it runs during compute.",
          some ? "Give the report the traces of all ranks: they show whether a rank or the "
                 "transfers are slow. "
               : "",
          worst->op),
      NULL, 0);
}

/* How compute hides an operation, by what it is used for in training. */
static const char *ways_to_hide(u8 op) {
  switch (comm_op_like(op)) {
  case TSCOPE_OP_SEND:
  case TSCOPE_OP_RECV:
    return "send each micro-batch's result when it is ready (isend), post what is received ahead "
           "(irecv), more micro-batches, an interleaved schedule";
  case TSCOPE_OP_ALLTOALL:
    return "split the batch in two and exchange one half while the other computes, shared experts "
           "beside the exchange, a separate stream";
  case TSCOPE_OP_ALLGATHER:
  case TSCOPE_OP_REDUCE_SCATTER:
    return "prefetch in FSDP, smaller units that are sharded, asynchronous calls with a late wait";
  default:
    return "gradient buckets (bucket_cap_mb), asynchronous calls with a late wait, prefetch in "
           "FSDP, a separate stream";
  }
}

void rule_exposed_comm(struct findings *f) {
  struct exposed e;
  if (isnan(f->r->ov_exposed_wait_ms)) {
    add_whole_comm_finding(f);
    return;
  }
  if (!find_exposed_transfers(f, true, &e))
    return;
  const struct results *r = f->r;
  const struct budget_line *line = budget_line_of(r, BUDGET_COMMUNICATION);
  double room = r->ov_compute_ms - r->ov_overlapped_ms;
  /* Ranks that wait for a slow rank anyway gain nothing by hiding their transfers. */
  double saving = saving_of(f, line ? &line->cure : NULL, fmin(e.transfer_ms, room));
  double gain = per_step_of(f, saving);
  add_transfers_finding(
      f, &e, gain, saving,
      say(f,
          e.missing
              ? "%s of %s is exposed communication, waits for ranks without a record of it included"
              : "%s of %s is communication that compute could hide",
          percent((e.missing ? e.transfer_ms : gain) / f->step_ms).text, of_each_step(f)),
      "compute hid these transfers",
      say(f, "Start %s earlier, so that it runs during compute: %s.", e.worst->op,
          ways_to_hide(e.worst->op_id)));
}
