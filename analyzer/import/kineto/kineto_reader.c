/* SPDX-License-Identifier: MIT
 *
 * A trace file as a stream: a window moves over the text, and never holds more than one incomplete
 * event.
 */
#include <errno.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "import/byte_source.h"
#include "import/file_budget.h"
#include "import/kineto/kineto.h"

#define WINDOW_BYTES (1u << 20)
#define MOST_WINDOW_BYTES (16u << 20)    /* no event is larger */
#define MOST_SKIPPED_BYTES (64ull << 20) /* nor anything else that is passed over */
#define FARTHEST_NS (1ll << 61) /* no instant is farther away: differences of two must fit */

struct reader {
  struct kineto_trace *trace;
  struct byte_source *source;
  char *window;
  size_t room, fill; /* `fill` bytes of text in it, followed by SCAN_PADDING zeroes */
  const char *at;
  u64 before; /* bytes of text before the window */
  i64 base_ns;
  u64 most_events, skipped;
  u64 bad_events, first_bad, malformed;
  bool ended, cut, unit_known, nanoseconds;
  int error; /* of reading the file */
};

static const char *end_of(const struct reader *reader) {
  return reader->window + reader->fill;
}

static u64 position(const struct reader *reader) {
  return reader->before + (u64)(reader->at - reader->window);
}

/* Reads more text after what is still needed, which moves to the window's front. False at the end
 * of the file, or if what is needed does not fit. */
static bool refill_window(struct reader *reader) {
  size_t wanted = (size_t)(end_of(reader) - reader->at);
  if (reader->ended)
    return false;
  if (wanted == reader->room) {
    if (reader->room >= MOST_WINDOW_BYTES)
      return false;
    char *larger =
        memory_resized(reader->window, size_sum(size_product(reader->room, 2), SCAN_PADDING), 1);
    reader->at = larger + (reader->at - reader->window);
    reader->window = larger;
    reader->room *= 2;
  }
  reader->before += (u64)(reader->at - reader->window);
  memmove(reader->window, reader->at, wanted);
  reader->at = reader->window;
  i64 got = byte_source_read(reader->source, (u8 *)reader->window + wanted, reader->room - wanted);
  if (got < 0)
    reader->error = (int)got;
  reader->fill = wanted + (got > 0 ? (size_t)got : 0);
  reader->ended = got < (i64)(reader->room - wanted);
  memset(reader->window + reader->fill, 0, SCAN_PADDING);
  return got > 0;
}

/* The next byte that is no space; 0 at the end. */
static char peek(struct reader *reader) {
  u64 begin = position(reader);
  do {
    reader->at = scan_space(reader->at);
    if (reader->at < end_of(reader))
      return *reader->at;
  } while (position(reader) - begin < MOST_SKIPPED_BYTES && refill_window(reader));
  return 0;
}

/* Skips a value that does not fit into the window. */
static bool skip_large_value(struct reader *reader) {
  u64 depth = 0, begin = position(reader);
  bool in_string = false;
  do {
    while (reader->at < end_of(reader)) {
      char c = *reader->at++;
      if (in_string) {
        if (c == '\\')
          reader->at++;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        depth++;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return true;
      }
    }
    if (reader->at > end_of(reader)) /* an escape across the edge */
      reader->at = end_of(reader);
  } while (position(reader) - begin < MOST_SKIPPED_BYTES && refill_window(reader));
  return false;
}

static int add_event(struct reader *reader, struct kineto_event *event) {
  struct kineto_trace *trace = reader->trace;
  if (budget_is_over())
    return -EFBIG;
  trace->events++;
  reader->malformed += event->malformed;
  if (event->phase != 'X')
    return 0;
  if (!reader->unit_known && event->start != NS_UNKNOWN) {
    reader->nanoseconds = event->far;
    reader->unit_known = true;
  }
  if (reader->nanoseconds) {
    event->start = event->start == NS_UNKNOWN || event->far ? event->start : event->start / 1000;
    event->length = event->length == NS_UNKNOWN ? event->length : event->length / 1000;
  } else if (event->far) {
    event->start = NS_UNKNOWN;
    reader->malformed++;
  }
  kineto_add_event(trace, event);
  return 0;
}

/* From the end of something that is not an event to what may be the next one. */
static bool skip_to_next_event(struct reader *reader) {
  if (reader->bad_events++ == 0)
    reader->first_bad = position(reader);
  reader->at++;
  for (;;) {
    const char *next = memchr(reader->at, '{', (size_t)(end_of(reader) - reader->at));
    if (next) {
      reader->at = next;
      return true;
    }
    reader->at = end_of(reader);
    if (!refill_window(reader))
      return false;
  }
}

/* The list of events; `at` is after its opening bracket. */
static int read_events(struct reader *reader) {
  struct kineto_event event;
  u32 commas = 0; /* since the last event */
  for (;;) {
    char c = peek(reader);
    if (c == ',') {
      reader->at++;
      reader->malformed += commas++ > 0;
      continue;
    }
    if (c == ']') {
      reader->malformed += commas > 0 && reader->trace->events;
      reader->at++;
      return 0;
    }
    if (c == 0) {
      reader->cut = true;
      return 0;
    }
    if (reader->trace->events >= reader->most_events)
      return 0;
    const char *behind = reader->at;
    enum kineto_scan result =
        c == '{' ? kineto_event_scan(&behind, end_of(reader), &event) : KINETO_BAD;
    if (result == KINETO_CUT) {
      if (refill_window(reader))
        continue;
      if (reader->ended || !skip_large_value(reader)) {
        reader->cut = true;
        return 0;
      }
      reader->skipped++;
    } else if (result == KINETO_BAD) {
      if (!skip_to_next_event(reader)) {
        reader->cut = true;
        return 0;
      }
    } else {
      reader->at = behind;
      commas = 0;
      int error = add_event(reader, &event);
      if (error)
        return error;
    }
  }
}

/* A complete value in the window; NULL if it does not fit, or is not complete. */
static const char *find_value_end(struct reader *reader) {
  for (;;) {
    const char *behind = scan_value(reader->at, end_of(reader));
    if (behind || !refill_window(reader))
      return behind;
  }
}

/* One member of the document; false at its end. */
static bool read_member(struct reader *reader, int *error) {
  char c;
  while ((c = peek(reader)) == ',')
    reader->at++;
  if (c == '}')
    return false;
  struct json_text key = {0}, name;
  char copy[64];
  const char *behind = c == '"' ? find_value_end(reader) : NULL;
  if (!behind) {
    reader->cut = true;
    return false;
  }
  scan_string(reader->at + 1, end_of(reader), &key);
  name = (struct json_text){.at = copy, .n = MIN(key.n, sizeof(copy))};
  memcpy(copy, key.at, name.n);
  reader->at = behind;
  if (peek(reader) != ':') {
    reader->cut = true;
    return false;
  }
  reader->at++;
  c = peek(reader);
  if (c == '[' && TEXT_IS(name, "traceEvents")) {
    reader->at++;
    *error = read_events(reader);
    return *error == 0 && !reader->cut && reader->trace->events < reader->most_events;
  }
  behind = find_value_end(reader);
  if (behind == reader->at || (!behind && (c != '{' && c != '[')) ||
      (!behind && (reader->ended || !skip_large_value(reader)))) {
    reader->cut = true;
    return false;
  }
  if (behind) {
    kineto_add_fact(reader->trace, name, reader->at, (size_t)(behind - reader->at),
                    &reader->base_ns);
    reader->at = behind;
  }
  return true;
}

static int read_document(struct reader *reader) {
  int error = 0;
  char c = peek(reader);
  if ((u8)c == 0xef && end_of(reader) - reader->at > 3) { /* a byte order mark */
    reader->at += 3;
    c = peek(reader);
  }
  reader->at++;
  if (c == '[')
    return read_events(reader);
  while (c == '{' && read_member(reader, &error)) {
  }
  return c == '{' ? error : -EBADMSG;
}

/* What is wrong with the file, for people. */
static const char *describe_damage(struct reader *reader) {
  struct kineto_trace *trace = reader->trace;
  struct arena *arena = &trace->arena;
  struct quantity events = plural((double)trace->events, "event");
  if (reader->error)
    return arena_printf(arena, "%s after %s",
                        reader->error == -EBADMSG ? "the compressed data is damaged or cut short"
                                                  : strerror(-reader->error),
                        events.text);
  if (reader->cut && reader->bad_events)
    return arena_printf(arena,
                        "broken JSON in %s, the first at byte %llu; it ends, or the rest "
                        "cannot be read, after %s",
                        plural((double)reader->bad_events, "place").text,
                        (unsigned long long)reader->first_bad, events.text);
  if (reader->cut)
    return arena_printf(arena, "%s after %s, at byte %llu",
                        reader->ended ? "the file is cut short or broken"
                                      : "the rest cannot be read",
                        events.text, (unsigned long long)position(reader));
  if (reader->bad_events)
    return arena_printf(
        arena, "broken JSON in %s, the first at byte %llu; the intact parts were read",
        plural((double)reader->bad_events, "place").text, (unsigned long long)reader->first_bad);
  if (reader->skipped)
    return arena_printf(arena, "%s of over %u MiB left out",
                        plural((double)reader->skipped, "event").text, MOST_WINDOW_BYTES >> 20);
  if (trace->events >= reader->most_events)
    return arena_printf(
        arena, "only the first %s were read, as requested; the rest of the file is not known",
        events.text);
  return NULL;
}

static bool is_range(const struct kineto_item *item) {
  return item->kind == KINETO_ITEM_RANGE;
}

ORDER_BY(by_start, struct kineto_item, UP(start) DOWN(end))
/* A range that was added may be as long as the one operator in it. */
ORDER_BY(by_start_and_depth, struct kineto_item, UP(start) DOWN(end) DOWN_OF(is_range))

/* Moves a time onto the absolute axis; false if no clock can show it. */
static bool make_absolute(struct kineto_item *item, i64 base_ns) {
  return !__builtin_add_overflow(item->start, base_ns, &item->start) &&
         !__builtin_add_overflow(item->end, base_ns, &item->end) && item->start > -FARTHEST_NS &&
         item->end < FARTHEST_NS;
}

/* Times become absolute, items are sorted: of those that start together the longer first. */
static void sort_items(struct kineto_trace *trace, i64 base_ns) {
  u32 n = 0;
  trace->begin = trace->end = NS_UNKNOWN;
  for (u32 i = 0; i < trace->items.n; i++) {
    struct kineto_item *item = &trace->items.at[n];
    *item = trace->items.at[i];
    if (!make_absolute(item, base_ns))
      continue;
    bool counts = item->kind != KINETO_ITEM_PYTHON; /* main() begins before, and ends after */
    trace->begin = counts ? least_known(item->start, trace->begin) : trace->begin;
    trace->end = counts ? MAX(item->end, trace->end) : trace->end;
    n++;
  }
  trace->items.n = n;
  SORT(trace->items.at, trace->items.n, by_start);
}

int kineto_trace_read(struct kineto_trace *trace, const char *path,
                      const struct model_options *options, char *why, size_t why_bytes) {
  struct reader reader = {.trace = trace,
                          .window = memory_array(WINDOW_BYTES + SCAN_PADDING, 1),
                          .room = WINDOW_BYTES,
                          .most_events = options->quick ? options->quick : UINT64_MAX};
  *trace = (struct kineto_trace){.path = path, .rank = INDEX_NONE, .lost_since = NS_UNKNOWN};
  trace->names.kernel_names = options->kernel_names;
  int error = byte_source_open(&reader.source, path);
  if (error == 0) {
    reader.at = reader.window;
    memset(reader.window, 0, SCAN_PADDING);
    error = read_document(&reader);
    trace->bytes = position(&reader);
    trace->file_bytes = byte_source_position(reader.source);
  }
  if (error == 0) {
    sort_items(trace, reader.base_ns);
    if (!options->quick)
      kineto_end_at_lost_work(trace, reader.cut || reader.error);
    u32 n = trace->items.n;
    kineto_find_spins(trace);
    kineto_find_worker_waits(trace);
    kineto_find_forward_passes(trace);
    if (trace->items.n > n)
      SORT(trace->items.at, trace->items.n, by_start_and_depth);
    trace->damage = describe_damage(&reader);
    trace->malformed = reader.malformed + trace->names.bad_escapes;
    if (trace->items.n == 0) {
      snprintf(why, why_bytes, "has no events that can be used%s%s", trace->damage ? ": " : "",
               text_or_empty(trace->damage));
      error = -ENODATA;
    }
  } else if (error == -EBADMSG) {
    snprintf(why, why_bytes, "is not JSON");
  } else {
    snprintf(why, why_bytes, "cannot be read: %s", strerror(-error));
  }
  byte_source_close(reader.source);
  free(reader.window);
  if (error)
    kineto_trace_free(trace);
  return error;
}

void kineto_trace_free(struct kineto_trace *trace) {
  kineto_names_free(&trace->names);
  FREE_EACH(trace, items.at, comms.at, groups.at, syncs.at, lanes.at, lanes.index.slots);
  arena_release(&trace->arena);
  *trace = (struct kineto_trace){0};
}
