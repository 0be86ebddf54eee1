/* SPDX-License-Identifier: MIT */
#include "hosts/run_records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/results/results.h"
#include "base/quantity.h"
#include "base/sorting.h"

static double number_at(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *text_at(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static bool is_word(const json_t *end, const char *key, const char *word) {
  return same_text(text_at(end, key), word);
}

/* A rank whose program said why it ended (an exception, an exit status) was not lost by its host.
 */
static bool was_lost(const json_t *end) {
  bool began_it = is_word(end, "part", end_part_words[END_PART_CULPRIT]) ||
                  is_word(end, "part", end_part_words[END_PART_SILENT]);
  bool no_reason = is_word(end, "how", rank_end_way_words[RANK_END_SIGNAL]) ||
                   is_word(end, "how", rank_end_way_words[RANK_END_SILENT]);
  return began_it && no_reason && !text_at(end, "exception");
}

/* A run that is read: its ranks and their ends by rank, and how many ranks a host has so far. */
struct run_reading {
  struct run_records *records;
  struct run_record run;
  const json_t *ends;
  struct hash_index ranks, ends_of;
  VECTOR(u32) on_host;
};

static void index_ends(struct run_reading *reading) {
  size_t i;
  const json_t *end;
  json_array_foreach(reading->ends, i, end) {
    double rank = number_at(end, "rank");
    if (rank >= 0 && rank < INDEX_NONE)
      hash_index_add(&reading->ends_of, (u32)rank, (u32)i);
  }
}

/* How many ranks before this one ran on its host: torchrun, Slurm and MPI give them its devices in
 * this order. */
static u32 place_on_host(struct run_reading *reading, u32 host) {
  VECTOR_REACH(&reading->on_host, host);
  return reading->on_host.at[host]++;
}

static void add_rank(struct run_reading *reading, const json_t *rank) {
  struct run_records *records = reading->records;
  struct run_record *run = &reading->run;
  const char *host = text_at(rank, "host");
  double number = number_at(rank, "rank"), waited = number_at(rank, "last_wait_ms");
  if (!host || !(number >= 0 && number < INDEX_NONE))
    return;
  struct rank_record record = {.rank = (u32)number,
                               .host = text_number(&records->hosts, host),
                               .own_ms = number_at(rank, "median_compute_ms")};
  char name[512];
  snprintf(name, sizeof(name), "%u %u", run->job, record.rank);
  record.position = text_number(&records->positions, name);
  snprintf(name, sizeof(name), "%s" DEVICE_OF "%u", host, place_on_host(reading, record.host));
  record.device = text_number(&records->devices, name);
  record.late = waited / run->step_ms;
  u32 end = hash_index_first(&reading->ends_of, record.rank);
  record.lost = end != INDEX_NONE && was_lost(json_array_get(reading->ends, end));
  hash_index_add(&reading->ranks, record.rank, run->ranks.n);
  VECTOR_PUSH(&run->ranks, record);
}

static u32 host_of(const struct run_reading *reading, double rank) {
  u32 index =
      rank >= 0 && rank < INDEX_NONE ? hash_index_first(&reading->ranks, (u32)rank) : INDEX_NONE;
  return index == INDEX_NONE ? INDEX_NONE : reading->run.ranks.at[index].host;
}

static void add_link(struct run_reading *reading, const json_t *messages) {
  struct run_records *records = reading->records;
  struct run_record *run = &reading->run;
  u32 from = host_of(reading, number_at(messages, "from")),
      to = host_of(reading, number_at(messages, "to"));
  double ms = number_at(messages, "transfer_ms");
  const char *op = text_at(messages, "op");
  if (from == INDEX_NONE || to == INDEX_NONE || from == to || !(ms > 0))
    return;
  char name[1100];
  snprintf(name, sizeof(name), "%s" ARROW "%s", records->hosts.texts.at[from],
           records->hosts.texts.at[to]);
  u32 link = text_number(&records->links, name);
  snprintf(name, sizeof(name), "%u %s %.0f", run->job, text_or_empty(op),
           number_at(messages, "bytes"));
  u32 kind = text_number(&records->kinds, name);
  VECTOR_PUSH(&run->links,
              (struct link_record){.from = from, .to = to, .link = link, .kind = kind, .ms = ms});
}

/* A run that counted twice would be one without noise. */
static bool is_there(struct run_records *records, const struct run_record *run) {
  SCOPED_ARENA struct arena arena = {0};
  u32 before = records->known.texts.n;
  return isfinite(run->began_s) &&
         text_number(&records->known, arena_printf(&arena, "%.3f %s", run->began_s, run->name)) <
             before;
}

bool run_records_add(struct run_records *records, const json_t *report, const char *name) {
  const char *schema = text_at(report, "schema");
  if (!schema || strcmp(schema, REPORT_SCHEMA) != 0)
    return false;
  const json_t *facts = json_object_get(report, "run"), *row;
  const json_t *distributed = json_object_get(report, "distributed");
  const char *id = text_at(facts, "id"), *command = text_at(facts, "command");
  const char *job = arena_printf(&records->arena, "%s, %s", command ? command : "unknown command",
                                 plural(number_at(facts, "world_size"), "rank").text);
  struct run_reading reading = {.records = records,
                                .run = {.name = arena_text(&records->arena, id ? id : name),
                                        .job = text_number(&records->jobs, job),
                                        .began_s = number_at(facts, "began_s"),
                                        .step_ms = number_at(distributed, "mean_step_wall_ms")},
                                .ends =
                                    json_object_get(json_object_get(report, "run_end"), "ranks")};
  size_t i;
  if (is_there(records, &reading.run))
    return false;
  index_ends(&reading);
  json_array_foreach(json_object_get(distributed, "ranks"), i, row) add_rank(&reading, row);
  json_array_foreach(json_object_get(report, "collectives"), i, row) add_link(&reading, row);
  VECTOR_PUSH(&records->runs, reading.run);
  FREE_EACH(&reading, ranks.slots, ends_of.slots, on_host.at);
  return true;
}

ORDER_BY(by_begin, struct run_record, UP(began_s) BY_TEXT(name))

void run_records_order(struct run_records *records) {
  if (ANY(records->runs.at, records->runs.n, one, isnan(one->began_s)))
    return;
  SORT(records->runs.at, records->runs.n, by_begin);
  records->in_order = true;
}

void run_records_free(struct run_records *records) {
  struct text_numbers *const names[] = {&records->hosts, &records->devices, &records->positions,
                                        &records->links, &records->kinds,   &records->jobs,
                                        &records->known};
  FOR_EACH(names, LENGTH_OF(names), name)
    text_numbers_free(*name);
  FOR_EACH(records->runs.at, records->runs.n, run)
    FREE_EACH(run, ranks.at, links.at);
  free(records->runs.at);
  arena_release(&records->arena);
}
