/* SPDX-License-Identifier: MIT
 *
 * The flight record as flat tables, for other programs: groups, memberships, collectives, calls.
 */
#include "report/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/utf8.h"
#include "model/flight_record.h"
#include "report/selection.h"

#define MOST_COLUMNS 20

struct writer {
  FILE *out;
  bool json;
  const char *const *columns; /* NULL at the end */
  u32 column;
  u64 rows;
};

/* --- Cells --- */

static void put_json_text(FILE *out, const char *text) {
  SCOPED char *valid = utf8_valid_copy(text);
  json_t *string = json_string(valid);
  if (string)
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

static void begin_cell(struct writer *w) {
  if (w->json)
    fprintf(w->out, "%s\"%s\":", w->column ? "," : w->rows ? ",\n{" : "\n{", w->columns[w->column]);
  else if (w->column)
    fputc(',', w->out);
  w->column++;
}

static void end_row(struct writer *w) {
  fputs(w->json ? "}" : "\n", w->out);
  w->column = 0;
  w->rows++;
}

static void put_text_cell(struct writer *w, const char *value) {
  begin_cell(w);
  if (!value)
    fputs(w->json ? "null" : "", w->out);
  else if (w->json)
    put_json_text(w->out, value);
  else
    put_csv_text(w->out, value);
}

static void put_number_cell(struct writer *w, bool known, i64 value) {
  begin_cell(w);
  if (known)
    fprintf(w->out, "%lld", (long long)value);
  else
    fputs(w->json ? "null" : "", w->out);
}

/* --- Rows --- */

static void put_groups(struct writer *w, const struct results *results,
                       const struct report_view *view) {
  const struct flight_record *flight = results->check.flight;
  for (u32 g = 0; g < flight->n_groups; g++) {
    const struct check_group *group = &results->check.groups[g];
    if (!selection_has_group(view, &flight->groups[g]))
      continue;
    put_number_cell(w, true, g);
    put_text_cell(w, group->name);
    put_text_cell(w, group->desc);
    put_number_cell(w, flight->groups[g].members_known, flight->groups[g].n_members);
    put_number_cell(w, true, (i64)group->recorded);
    put_number_cell(w, true, (i64)group->matched);
    put_number_cell(w, true, (i64)group->mismatched);
    end_row(w);
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
      put_number_cell(w, true, g);
      put_number_cell(w, true, m);
      put_number_cell(w, true, rank->rank);
      put_text_cell(w, rank->host);
      put_number_cell(w, true, rank->seen);
      end_row(w);
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
  for (u32 i = 0; i < n; i++)
    least = flight->calls[parts[i].call].state < least ? flight->calls[parts[i].call].state : least;
  put_number_cell(w, true, first->group);
  put_number_cell(w, true, first->seq);
  put_text_cell(w, first->op);
  put_number_cell(w, group->members_known, group->n_members);
  put_number_cell(w, true, n);
  put_text_cell(w, mismatch                ? match_state_words[mismatch->state]
                   : n == group->n_members ? "matched"
                                           : NULL);
  put_text_cell(w, flight_state_words[least]);
  put_text_cell(w, first->in);
  put_text_cell(w, first->out);
  put_text_cell(w, first->in_type);
  put_text_cell(w, mismatch ? mismatch->detail : NULL);
  end_row(w);
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
    put_number_cell(w, true, rank->rank);
    put_number_cell(w, true, (i64)call->order);
    put_number_cell(w, true, call->group);
    put_number_cell(w, call->seq != SEQ_UNKNOWN, call->seq);
    put_text_cell(w, call->op);
    put_number_cell(w, call->peer != INDEX_NONE,
                    call->peer != INDEX_NONE ? (i64)flight->ranks[call->peer].rank : 0);
    put_text_cell(w, flight_state_words[call->state]);
    put_text_cell(w, call->in);
    put_text_cell(w, call->out);
    put_text_cell(w, call->in_type);
    put_text_cell(w, call->out_type);
    put_number_cell(w, call->created != NS_UNKNOWN, call->created);
    const struct flight_frame *frame = call->stack && call->stack->n ? call->stack->frames : NULL;
    put_text_cell(w, frame ? frame->file : NULL);
    put_number_cell(w, frame != NULL, frame ? frame->line : 0);
    end_row(w);
  }
}

/* --- Tables --- */

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

static FILE *open_in(const char *folder, const char *name, const char *suffix) {
  char path[4096];
  int n = snprintf(path, sizeof(path), "%s/%s.%s", folder, name, suffix);
  errno = ENAMETOOLONG;
  return n < (int)sizeof(path) ? fopen(path, "w") : NULL;
}

static int close_checked(FILE *out) {
  int error = ferror(out) ? -EIO : 0;
  return fclose(out) != 0 && !error ? -errno : error;
}

static int write_csv(const struct export_table *table, const struct results *results,
                     const struct report_view *view, const char *folder) {
  FILE *out = open_in(folder, table->name, "csv");
  if (!out)
    return -errno;
  for (u32 c = 0; table->columns[c]; c++)
    fprintf(out, "%s%s", c ? "," : "", table->columns[c]);
  fputc('\n', out);
  struct writer writer = {.out = out, .columns = table->columns};
  table->put(&writer, results, view);
  return close_checked(out);
}

static int write_json(const struct results *results, const struct report_view *view,
                      const char *folder) {
  FILE *out = open_in(folder, "tables", "json");
  if (!out)
    return -errno;
  fputs("{\"schema\":\"tscope.tables/1\"", out);
  for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
    struct writer writer = {.out = out, .json = true, .columns = tables[i].columns};
    fprintf(out, ",\n\"%s\":[", tables[i].name);
    tables[i].put(&writer, results, view);
    fputs("]", out);
  }
  fputs("}\n", out);
  return close_checked(out);
}

int export_tables(const struct results *results, const struct report_view *view,
                  const char *folder) {
  if (!results->check.flight)
    return -ENODATA;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return -errno;
  int error = 0;
  for (size_t i = 0; i < sizeof(tables) / sizeof(*tables) && !error; i++)
    error = write_csv(&tables[i], results, view, folder);
  return error ? error : write_json(results, view, folder);
}
