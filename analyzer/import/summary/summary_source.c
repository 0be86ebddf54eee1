/* SPDX-License-Identifier: MIT */
#include "import/summary/summary_source.h"

#include <errno.h>

#include "base/checked_memory.h"
#include "import/file_budget.h"
#include "import/tscope/load_traces.h"
#include "import/tscope/trace_source.h"
#include "model/building.h"
#include "model/named_ranges.h"

/* What the importer keeps: the ranks that were there, pauses for input, named ranges. */

/* By step; NS_UNKNOWN where none was found. Only what was inferred: phases are among the facts. */
static void carry_input(struct carrier *c, const struct model *model, u32 rank, bool *found) {
  bool inferred = !c->reads && model->phases && !model_events(model, rank)->phases.n;
  u32 n = carry_count(c, inferred ? model->steps.n : 0, 1);
  i64 before = 0;
  *found = false;
  for (u32 step = 0; step < n; step++) {
    bool there = model->phases && step < model->steps.n;
    i64 *data = there ? &model->phases[cell_of_step(model, step, rank)].data : NULL;
    i64 change = c->reads ? 0 : (i64)((u64)*data - (u64)before);
    carry_difference(c, &change);
    before = (i64)((u64)before + (u64)change);
    if (c->reads && data)
      *data = before;
    *found |= before != NS_UNKNOWN;
  }
}

static void carry_range(struct carrier *c, struct named_range *range) {
  CARRY(c, &range->name);
  CARRY(c, &range->domain);
  CARRY(c, &range->count);
  CARRY(c, &range->sum);
  CARRY(c, &range->longest);
  if (c->reads && (!range->name || !range->domain))
    range->name = range->domain = "";
}

static void carry_ranges(struct carrier *c, struct named_range **ranges, u32 *n) {
  CARRY_LIST(c, *ranges, *n, 5, carry_range);
}

enum importer_part { PART_SETTLED, PART_INPUT, PART_RANGES };

void summary_keep_rank(const struct model *model, u32 rank, struct settled_ranks *settled,
                       struct carrier *found) {
  SCOPED_ARENA struct arena scratch = {0};
  struct named_range *ranges = NULL;
  u32 n = 0;
  bool any;
  CARRY_PART(found, carry_settled(found, settled));
  CARRY_PART(found, carry_input(found, model, rank, &any));
  if (model_named_ranges(model, rank, &scratch, &ranges, &n) != 0)
    n = 0;
  CARRY_PART(found, carry_ranges(found, &ranges, &n));
}

static const struct summary_source *source_of(const struct model *model) {
  return model_imported(model);
}

static const struct known_summary *summary_of(const struct model *model, u32 rank) {
  return source_of(model)->of_rank[rank];
}

/* A carrier from one of the importer's parts on; false if there is none. */
static bool open_found(const struct model *model, u32 rank, bool settled, enum importer_part at,
                       struct arena *arena, struct carrier *found) {
  const struct known_summary *summary = summary_of(model, rank);
  struct budget budget;
  char why[256];
  if (!summary || !summary->entry.found.bytes || (settled && !source_of(model)->settled[rank]))
    return false;
  budget_begin(&budget, BUDGET_MEMORY, summary->entry.found.bytes);
  const u8 *bytes = summary_read(summary->path, &summary->entry.found, arena);
  if (budget_end(&budget, 0, why, sizeof(why)) < 0 || !bytes)
    return false;
  *found = carrier_to_read(bytes, summary->entry.found.whole, arena);
  for (u32 part = 0; part < at; part++)
    CARRY_PART(found, found->at = found->end);
  if (found->bad)
    carrier_free(found);
  return !found->bad && found->reads;
}

static bool summary_found(const struct model *model, u32 rank, bool settled, struct arena *arena,
                          struct carrier *found) {
  return open_found(model, rank, settled, PART_RANGES + 1, arena, found);
}

/* Single spans: from the rank's trace, where it can be reached. */

static bool find_trace(const struct model *model, u32 rank) {
  const struct summary_source *source = source_of(model);
  struct summary_trace *trace = &source->trace_of[rank];
  const struct rank *of = &model->ranks[rank];
  char why[256] = "";
  if (trace->read || trace->why)
    return trace->read;
  int error = trace_read_again(model, rank, source->kernel_names, &trace->events, why, sizeof(why));
  trace->read = error == 0;
  if (error == -ENOENT)
    trace->why =
        arena_printf(&trace->texts, "its trace is not here: it was %s on %s", of->path, of->host);
  else if (error)
    trace->why = arena_printf(&trace->texts, "%s %s", of->path, why);
  return trace->read;
}

/* The model with the rank's events from its trace, to be freed; NULL where there is none. Only of
 * ranks whose summary is used: of others the report says that what ran on them is missing. */
static struct model *with_trace(const struct model *model, u32 rank) {
  const struct summary_source *source = source_of(model);
  bool there = source->settled[rank] && source->traces && find_trace(model, rank);
  return there ? model_with_events(model, rank, &source->trace_of[rank].events) : NULL;
}

static int load_trace_of(const struct model *model, u32 rank, struct timeline *timeline) {
  SCOPED struct model *with = with_trace(model, rank);
  return with ? trace_timelines.load(with, rank, timeline) : -ENODATA;
}

static int named_ranges(const struct model *model, u32 rank, struct arena *arena,
                        struct named_range **ranges, u32 *n) {
  const struct timeline_source *inner = source_of(model)->inner;
  struct carrier c;
  *ranges = NULL;
  *n = 0;
  if (!summary_of(model, rank))
    return inner && inner->named_ranges ? inner->named_ranges(model, rank, arena, ranges, n) : 0;
  if (!model_events(model, rank)->named_ranges)
    return 0;
  bool good = open_found(model, rank, true, PART_RANGES, arena, &c);
  if (good) {
    CARRY_PART(&c, carry_ranges(&c, ranges, n));
    good = !c.bad;
    carrier_free(&c);
  }
  if (good)
    return 0;
  *n = 0;
  SCOPED struct model *with = with_trace(model, rank);
  return with ? trace_timelines.named_ranges(with, rank, arena, ranges, n) : 0;
}

static void forget_input(const struct model *model, u32 rank) {
  for (u32 step = 0; model->phases && step < model->steps.n; step++)
    model->phases[cell_of_step(model, step, rank)].data = NS_UNKNOWN;
}

static bool infer_input(const struct model *model, u32 rank) {
  const struct timeline_source *inner = source_of(model)->inner;
  SCOPED_ARENA struct arena scratch = {0};
  struct carrier c;
  bool found = false;
  if (!summary_of(model, rank))
    return inner && inner->infer_input && inner->infer_input(model, rank);
  bool good = open_found(model, rank, true, PART_INPUT, &scratch, &c);
  if (good) {
    CARRY_PART(&c, carry_input(&c, model, rank, &found));
    good = !c.bad;
    carrier_free(&c);
  }
  if (!good) { /* what was found is damaged: load() reads the trace, too */
    SCOPED struct model *with = with_trace(model, rank);
    forget_input(model, rank);
    found = with && trace_infer_input(with, rank);
  }
  return found;
}

static int load(const struct model *model, u32 rank, struct timeline *timeline) {
  const struct timeline_source *inner = source_of(model)->inner;
  int error = summary_of(model, rank) ? load_trace_of(model, rank, timeline)
              : inner                 ? inner->load(model, rank, timeline)
                                      : -ENODATA;
  timeline->source = error ? NULL : inner ? inner : &trace_timelines;
  return error;
}

static const char *unreachable(const struct model *model, u32 rank) {
  return source_of(model)->trace_of[rank].why;
}

void summary_source_release(void *source) {
  const struct summary_source *of = source;
  FOR_EACH_CHANGED(of->trace_of, of->n_ranks, one) {
    rank_events_release(&one->events);
    arena_release(&one->texts);
  }
}

static const struct flight_record *flight(const struct model *model, struct arena *arena) {
  return source_of(model)->traces ? trace_flight_record(model, arena) : NULL;
}

const struct timeline_source summary_timelines = {.load = load,
                                                  .infer_input = infer_input,
                                                  .named_ranges = named_ranges,
                                                  .flight = flight,
                                                  .found = summary_found,
                                                  .unreachable = unreachable};
