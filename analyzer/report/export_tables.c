/* SPDX-License-Identifier: MIT
 *
 * The flight record as flat tables, for other programs: groups, memberships, collectives, calls.
 */
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked_memory.h"
#include "base/json_values.h"
#include "base/output_file.h"
#include "base/sorting.h"
#include "model/flight_record.h"
#include "report/selection.h"

#define MOST_COLUMNS 20

struct writer {
  FILE *out;
  bool json;
  const char *const *columns; /* NULL at the end */
  u64 rows;
};

static void put_json_text(FILE *out, const char *text) {
  json_t *string = text_or_null(text);
  json_dumpf(string, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
  json_decref(string);
}

/* Quoted where it has to be; a text that a spreadsheet would run as a formula is shown as text. */
static void put_csv_text(FILE *out, const char *text) {
  bool quote = strpbrk(text, ",\"\r\n") != NULL || strchr("=+-@", *text);
  if (quote)
    fputc('"', out);
  if (*text && strchr("=+-@", *text))
    fputc('\'', out);
  for (; *text; text++) {
    if (*text == '"')
      fputc('"', out);
    fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
  }
  if (quote)
    fputc('"', out);
}

struct cell {
  bool known, is_text;
  i64 number;
  const char *text;
};
#define KNOWN(is_known, value)                                                                     \
  { .known = (is_known), .number = (i64)(value) }
#define NUMBER(value) KNOWN(true, value)
#define TEXT(value)                                                                                \
  { .known = (value) != NULL, .is_text = true, .text = (value) }

/* As many cells as the table has columns. */
static void put_row(struct writer *w, const struct cell *cells) {
  for (u32 c = 0; w->columns[c]; c++) {
    const struct cell *cell = &cells[c];
    if (w->json)
      fprintf(w->out, "%s\"%s\":", c ? "," : w->rows ? ",\n{" : "\n{", w->columns[c]);
    else if (c)
      fputc(',', w->out);
    if (!cell->known)
      fputs(w->json ? "null" : "", w->out);
    else if (!cell->is_text)
      fprintf(w->out, "%lld", (long long)cell->number);
    else if (w->json)
      put_json_text(w->out, cell->text);
    else
      put_csv_text(w->out, cell->text);
  }
  fputs(w->json ? "}" : "\n", w->out);
  w->rows++;
}

static void put_groups(struct writer *w, const struct results *results,
                       const struct report_view *view) {
  const struct flight_record *flight = results->check.flight;
  for (u32 g = 0; g < flight->n_groups; g++) {
    const struct check_group *group = &results->check.groups[g];
    if (!selection_has_group(view, &flight->groups[g]))
      continue;
    put_row(w, (struct cell[]){NUMBER(g), TEXT(group->name), TEXT(group->desc),
                               KNOWN(flight->groups[g].members_known, flight->groups[g].n_members),
                               NUMBER(group->recorded), NUMBER(group->matched),
                               NUMBER(group->mismatched)});
  }
}

static void put_memberships(struct writer *w, const struct results *results,
                            const struct report_view *view) {
  const struct flight_record *flight = results->check.flight;
  for (u32 g = 0; g < flight->n_groups; g++)
    for (u32 m = 0; m < flight->groups[g].n_members; m++) {
      const struct flight_rank *rank = &flight->ranks[flight->groups[g].members[m]];
      if (!selection_has_group(view, &flight->groups[g]) ||
          !selection_has_rank(view->ranks, rank->rank))
        continue;
      put_row(w, (struct cell[]){NUMBER(g), NUMBER(m), NUMBER(rank->rank), TEXT(rank->host),
                                 NUMBER(rank->seen)});
    }
}

/* Calls of one collective, adjacent once sorted. */
struct part {
  u32 group;
  i64 seq;
  u32 call;
};

ORDER_BY(by_collective, struct part, UP(group) UP(seq) UP(call))

/* Mismatches of collectives come in the same order; `next` is the first that is not behind. */
static const struct check_mismatch *mismatch_of(const struct collective_check *check,
                                                const struct part *part, u32 *next) {
  for (; *next < check->n_every_mismatch; ++*next) {
    const struct check_mismatch *m = &check->every_mismatch[*next];
    if (m->message || m->group_index > part->group)
      return NULL;
    if (m->group_index == part->group && m->seq >= (double)part->seq)
      return m->seq == (double)part->seq ? m : NULL;
  }
  return NULL;
}

static void put_collective(struct writer *w, const struct results *results,
                           const struct part *parts, u32 n, u32 *next_mismatch) {
  const struct flight_record *flight = results->check.flight;
  const struct flight_call *first = &flight->calls[parts->call];
  const struct flight_group *group = &flight->groups[first->group];
  const struct check_mismatch *mismatch = mismatch_of(&results->check, parts, next_mismatch);
  u8 least = FLIGHT_COMPLETED;
  FOR_EACH(parts, n, each)
    least = MIN(flight->calls[each->call].state, least);
  const char *check = mismatch                ? match_state_words[mismatch->state]
                      : n == group->n_members ? "matched"
                                              : NULL;
  put_row(w, (struct cell[]){NUMBER(first->group), NUMBER(first->seq), TEXT(first->op),
                             KNOWN(group->members_known, group->n_members), NUMBER(n), TEXT(check),
                             TEXT(flight_states[least].word), TEXT(first->in), TEXT(first->out),
                             TEXT(first->in_type), TEXT(mismatch ? mismatch->detail : NULL)});
}

static void put_collectives(struct writer *w, const struct results *results,
                            const struct report_view *view) {
  const struct flight_record *flight = results->check.flight;
  SCOPED struct part *parts = memory_array(size_sum(flight->n_calls, 1), sizeof(*parts));
  u32 n = 0, mismatch = 0;
  for (u32 i = 0; i < flight->n_calls; i++)
    if (!flight->calls[i].message && !flight->calls[i].coalesced &&
        selection_has_group(view, &flight->groups[flight->calls[i].group]))
      parts[n++] = (struct part){flight->calls[i].group, flight->calls[i].seq, i};
  SORT(parts, n, by_collective);
  for (u32 i = 0, calls; i < n; i += calls) {
    calls = ROW_OF_EQUALS(parts + i, n - i, a, b, a->group == b->group && a->seq == b->seq);
    put_collective(w, results, parts + i, calls, &mismatch);
  }
}

static void put_calls(struct writer *w, const struct results *results,
                      const struct report_view *view) {
  const struct flight_record *flight = results->check.flight;
  FOR_EACH(flight->calls, flight->n_calls, call) {
    const struct flight_rank *rank = &flight->ranks[call->rank];
    if (!selection_has_rank(view->ranks, rank->rank) ||
        !selection_has_group(view, &flight->groups[call->group]))
      continue;
    const struct call_frame *frame = call->stack && call->stack->n ? call->stack->frames : NULL;
    bool message = call->peer != INDEX_NONE;
    put_row(w, (struct cell[]){NUMBER(rank->rank), NUMBER(call->order), NUMBER(call->group),
                               KNOWN(call->seq != SEQ_UNKNOWN, call->seq), TEXT(call->op),
                               KNOWN(message, message ? flight->ranks[call->peer].rank : 0),
                               TEXT(flight_states[call->state].word), TEXT(call->in),
                               TEXT(call->out), TEXT(call->in_type), TEXT(call->out_type),
                               KNOWN(call->created != NS_UNKNOWN, call->created),
                               TEXT(frame ? frame->file : NULL),
                               KNOWN(frame, frame ? frame->line : 0)});
  }
}

struct export_table {
  const char *name;
  const char *columns[MOST_COLUMNS];
  void (*put)(struct writer *, const struct results *, const struct report_view *);
};

static const struct export_table tables[] = {
    {"groups", {"group", "name", "desc", "size", "recorded", "matched", "mismatched"}, put_groups},
    {"memberships", {"group", "group_rank", "rank", "host", "recorded"}, put_memberships},
    {"collectives",
     {"group", "seq", "op", "members", "calls", "check", "state", "input_sizes", "output_sizes",
      "dtype", "detail"},
     put_collectives},
    {"calls",
     {"rank", "order", "group", "seq", "op", "peer", "state", "input_sizes", "output_sizes",
      "input_dtype", "output_dtype", "created_ns", "file", "line"},
     put_calls},
};

static int open_in(struct output_file *file, const char *folder, const char *name,
                   const char *suffix) {
  SCOPED char *path = memory_printf("%s/%s.%s", folder, name, suffix);
  return output_file_open(file, path);
}

static int write_csv(const struct export_table *table, const struct results *results,
                     const struct report_view *view, const char *folder) {
  struct output_file file;
  int error = open_in(&file, folder, table->name, "csv");
  if (error)
    return error;
  for (u32 c = 0; table->columns[c]; c++)
    fprintf(file.out, "%s%s", c ? "," : "", table->columns[c]);
  fputc('\n', file.out);
  struct writer writer = {.out = file.out, .columns = table->columns};
  table->put(&writer, results, view);
  return output_file_close(&file, 0);
}

static int write_json(const struct results *results, const struct report_view *view,
                      const char *folder) {
  struct output_file file;
  int error = open_in(&file, folder, "tables", "json");
  if (error)
    return error;
  fputs("{\"schema\":\"tscope.tables/1\"", file.out);
  for (size_t i = 0; i < LENGTH_OF(tables); i++) {
    struct writer writer = {.out = file.out, .json = true, .columns = tables[i].columns};
    fprintf(file.out, ",\n\"%s\":[", tables[i].name);
    tables[i].put(&writer, results, view);
    fputs("]", file.out);
  }
  fputs("}\n", file.out);
  return output_file_close(&file, 0);
}

int export_tables(const struct results *results, const struct report_view *view,
                  const char *folder) {
  if (!results->check.flight)
    return -ENODATA;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return -errno;
  int error = 0;
  for (size_t i = 0; i < LENGTH_OF(tables) && !error; i++)
    error = write_csv(&tables[i], results, view, folder);
  return error ? error : write_json(results, view, folder);
}
