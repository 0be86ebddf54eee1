/* SPDX-License-Identifier: MIT */
#include "report/html/page.h"

#include "base/json_values.h"
#include "base/text_numbers.h"
#include "base/texts.h"
#include "model/rank_timeline.h"
#include "report/timeline/shown.h"

/* A piece is about 25 bytes of the page. */
#define MOST_PIECES 40000.0
#define MOST_RANKS 16u

struct picture {
  const struct shown_scope *scope;
  json_t *ranks, *paths, *collectives; /* collectives: {"number": facts} */
  struct text_numbers texts;           /* of all ranks; the first is "" */
  u32 cut; /* pieces left out because there was no room, the first ones of their ranks */
};

static void add_integer(json_t *list, i64 value) {
  json_array_append_new(list, json_integer(value));
}

static json_int_t index_of_text(struct picture *picture, const char *text) {
  return text_number(&picture->texts, text_or_empty(text));
}

static json_t *ns_or_null(i64 ns) {
  return ns == NS_UNKNOWN ? json_null() : json_integer(ns);
}

static json_t *index_or_null(u32 index) {
  return index == INDEX_NONE ? json_null() : json_integer(index);
}

static json_t *lanes_of(struct picture *picture, const struct shown_rank *rank) {
  return JSON_LIST(
      rank->lanes, rank->n_lanes, lane,
      json_pack("[I,i,i]", index_of_text(picture, lane->name), (int)lane->kind, (int)lane->rows));
}

/* What all members of a collective share, once; its position among the facts of members. */
static json_t *member(struct picture *picture, u32 index, const struct shown_span *span) {
  SCOPED_ARENA struct arena scratch = {0};
  struct shown_collective c = shown_collective(picture->scope, span->arrival, &scratch);
  char key[24];
  snprintf(key, sizeof(key), "%u", c.collective);
  if (c.collective != INDEX_NONE && !json_object_get(picture->collectives, key))
    json_object_set_new(
        picture->collectives, key,
        json_pack("{s:I,s:I,s:o,s:o,s:o,s:o,s:I}", "op", index_of_text(picture, c.op), "comm",
                  index_of_text(picture, c.comm), "bytes", number_or_null(c.bytes), "busbw_gbps",
                  number_or_null(c.busbw_gbps), "members", index_or_null(c.members), "seq",
                  index_or_null(c.seq), "algorithm", index_of_text(picture, c.algorithm)));
  return json_pack("[I,o,o]", (json_int_t)index, index_or_null(c.collective), ns_or_null(c.wait));
}

/* Pieces sorted by start: start after the one before, length, lane, row, kind, name, category; for
 * work on the device, how many pieces earlier it was launched, 0 if that is not shown. */
static json_t *spans_of(struct picture *picture, const struct shown_rank *rank) {
  enum { STARTS, LENGTHS, LANES, ROWS, KINDS, NAMES, CATEGORIES, LAUNCHES, COLUMNS };
  static const char *const names[] = {"start", "length", "lane",     "row",
                                      "kind",  "name",   "category", "launch"};
  json_t *columns[COLUMNS]; /* small whole numbers */
  json_t *members = json_array(), *sizes = json_array(), *spans = json_object();
  FOR_EACH_CHANGED(columns, COLUMNS, column)
    *column = json_array();
  i64 before = picture->scope->begin;
  u32 room = (u32)(2 * MOST_PIECES / picture->scope->n_ranks);
  u32 first = rank->n_spans > room ? rank->n_spans - room : 0;
  picture->cut += first;
  for (u32 i = first; i < rank->n_spans; i++) {
    const struct shown_span *span = &rank->spans[i];
    bool launched = span->launch != INDEX_NONE && span->launch >= first;
    add_integer(columns[STARTS], span->start - before);
    add_integer(columns[LENGTHS], span->end - span->start);
    add_integer(columns[LANES], span->lane);
    add_integer(columns[ROWS], span->row);
    add_integer(columns[KINDS], span->kind);
    add_integer(columns[NAMES], index_of_text(picture, rank->names[span->name].text));
    add_integer(columns[CATEGORIES], index_of_text(picture, span->category));
    add_integer(columns[LAUNCHES], launched ? (i64)i - span->launch : 0);
    before = span->start;
    if (span->arrival != INDEX_NONE && span->kind == SPAN_COLLECTIVE)
      json_array_append_new(members, member(picture, i - first, span));
    if (span->bytes > 0)
      json_array_append_new(sizes,
                            json_pack("[I,I]", (json_int_t)(i - first), (json_int_t)span->bytes));
  }
  for (u32 c = 0; c < COLUMNS; c++)
    json_object_set_new(spans, names[c], columns[c]);
  json_object_set_new(spans, "members", members);
  json_object_set_new(spans, "bytes", sizes);
  return spans;
}

static int add_rank(void *user, const struct shown_rank *rank) {
  struct picture *picture = user;
  json_t *spans = spans_of(picture, rank); /* its texts come first */
  json_t *row =
      json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "rank", index_or_null(rank->number), "host",
                text_or_null(rank->host), "device", text_or_null(rank->device), "why_empty",
                text_or_null(rank->why_empty), "lanes", lanes_of(picture, rank), "spans", spans);
  json_array_append_new(picture->ranks, row);
  return 0;
}

static int add_path(void *user, const struct shown_path *path) {
  struct picture *picture = user;
  const struct model *model = picture->scope->results->model;
  json_t *stretches =
      JSON_LIST(path->stretches, path->n, s,
                json_pack("[I,I,I,I,I,I]", (json_int_t)(s->start - picture->scope->begin),
                          (json_int_t)(s->end - s->start), (json_int_t)model->ranks[s->rank].rank,
                          index_of_text(picture, s->name), index_of_text(picture, s->category),
                          index_of_text(picture, s->reached_by)));
  json_array_append_new(picture->paths, stretches);
  return 0;
}

static json_t *steps_of(const struct shown_scope *scope) {
  return JSON_LIST(scope->steps, scope->n_steps, one,
                   json_pack("{s:I,s:s}", "step",
                             (json_int_t)scope->results->model->steps.first + one->step, "why",
                             shown_reason_words[one->why]));
}

static json_t *left_out_of(const struct picture *picture) {
  const struct shown_scope *scope = picture->scope;
  json_t *list = JSON_LIST(scope->left_out, scope->n_left_out, one, text_or_null(*one));
  if (picture->cut)
    json_array_append_new(
        list, json_sprintf("%u pieces, the first of their ranks, are left out for lack of space.",
                           picture->cut));
  return list;
}

/* The numbers that pieces and lanes have. */
static void put_kinds(json_t *timeline) {
  json_t *kinds = json_pack("{s:i,s:i}", "step", SHOWN_STEP, "call", SHOWN_CALL);
  for (int kind = 0; kind < SPAN_KINDS; kind++)
    if (span_kinds[kind].word)
      json_object_set_new(kinds, span_kinds[kind].word, json_integer(kind));
  json_object_set_new(timeline, "kinds", kinds);
  json_object_set_new(timeline, "lane_kinds",
                      json_pack("{s:i,s:i,s:i}", "steps", SHOWN_STEPS, "phases", SHOWN_PHASES,
                                "calls", SHOWN_CALLS));
}

static json_t *make_timeline(const struct shown_scope *scope) {
  struct picture picture = {
      .scope = scope, .ranks = json_array(), .paths = json_array(), .collectives = json_object()};
  const struct shown_visitor visitor = {add_rank, add_path, &picture};
  text_number(&picture.texts, "");
  shown_walk(scope, &visitor);
  json_t *texts = JSON_LIST(picture.texts.texts.at, picture.texts.texts.n, one, text_or_null(*one));
  text_numbers_free(&picture.texts);
  json_t *timeline =
      json_pack("{s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:o}", "steps", steps_of(scope), "left_out",
                left_out_of(&picture), "path_reason", text_or_null(scope->path_reason), "length",
                (json_int_t)(scope->end - scope->begin), "ranks", picture.ranks, "paths",
                picture.paths, "collectives", picture.collectives, "texts", texts);
  put_kinds(timeline);
  return timeline;
}

json_t *html_timeline(const struct results *results, const struct report_view *view) {
  struct shown_scope scope;
  const struct shown_request request = {.most_ranks = MOST_RANKS,
                                        .most_events = MOST_PIECES,
                                        SAME(view, ranks, steps_requested, threads)};
  shown_choose(results, &request, &scope);
  bool drawn = scope.source == SHOWN_TIMELINES || scope.source == SHOWN_RECORDED_CALLS;
  json_t *timeline = drawn ? make_timeline(&scope) : json_null();
  shown_release(&scope);
  return timeline;
}
