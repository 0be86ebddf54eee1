/* SPDX-License-Identifier: MIT */
#include "process/process_end.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/exception_links.def"
#include "format/own_code.h"
#include "format/scalar_line.h"
#include "format/text_parts.h"
#include "process/out_of_memory_kills.h"
#include "process/workers.h"
#include "record/process_trace.h"
#include "record/tick_clock.h"

/* What Python wrote last to standard error, if it is no traceback. */
static struct {
  u64 ticks;
  char text[256];
} last;

void tscope_end_record(enum tscope_end how, i32 status) {
  if (!tscope_trace_is_ours())
    return;
  struct tscope_file_header *header = tscope_trace.header;
  u64 none = 0;
  if (!__atomic_compare_exchange_n(&header->end_ticks, &none, tscope_ticks(), false,
                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  header->end_status = status;
  if (status) { /* these may be its last words, as of sys.exit("no data") */
    header->last_line_ticks = last.ticks;
    memcpy(header->last_line, last.text, sizeof(header->last_line));
  }
  __atomic_store_n(&header->end_kind, (u32)how, __ATOMIC_RELEASE);
  if (how == TSCOPE_END_AT_ONCE && tscope_trace.carried)
    tscope_recording_end();
}

/* A process that was stopped, and is let go only to be killed, did not live in between: the first
 * moment after a long gap is no sign of life, the next one is. */
void tscope_end_alive(void) {
  static u64 before;
  u64 now = tscope_ticks();
  if (!before || now - before < tscope_ticks_of_s(TSCOPE_GAP_S))
    __atomic_store_n(&tscope_trace.header->alive_ticks, now, __ATOMIC_RELAXED);
  before = now;
}

void tscope_end_count_oom_kills(void) {
  struct tscope_file_header *header = tscope_trace.header;
  static bool has_file;
  if (!has_file) {
    has_file = true;
    tscope_memory_events_file(header->memory_events, sizeof(header->memory_events));
    header->oom_kills_at_start = tscope_oom_kills(header->memory_events);
  }
  __atomic_store_n(&header->oom_kills, tscope_oom_kills(header->memory_events), __ATOMIC_RELAXED);
}

/* What rich draws around a traceback. */
#define BOX_CORNER "\u256d"
#define BOX_SIDE "\u2502"
#define BOX_FOOT "\u2570"

/* The last exception that Python wrote, read one line at a time. Never waits: if two threads write
 * at once, their text is mixed anyway. */
static struct {
  bool busy;
  bool in_traceback;
  bool original;  /* it is the traceback of the exception that another one told of */
  bool boxed;     /* drawn by rich, in a box */
  bool own_place; /* `place` is in the user's own code */
  bool linked;    /* the next traceback follows the last one in a chain */
  u32 link;       /* of the chain; in `links` */
  u32 n;
  char first[220]; /* exception of the chain in the user's own code, and its place; "" */
  char text[512];
  char place[512]; /* as in the header */
} line;

static const struct {
  const char *line, *words;
} links[] = {
#define X(id, line, words) {line, words},
    TSCOPE_EXCEPTION_LINKS(X)
#undef X
};

/* PyTorch puts "[rank3]: " before each line. */
static const char *skip_rank(const char *text) {
  if (!tscope_begins_with(text, "[rank"))
    return text;
  const char *rest = text + 5 + strspn(text + 5, "0123456789");
  return tscope_begins_with(rest, "]: ") ? rest + 3 : text;
}

/* `  File "FILE", line N, in FUNCTION`, or `| FILE:N in FUNCTION |` in a box: the last one in the
 * user's own code is kept. */
static void read_frame(const char *text) {
  static const struct {
    const char *begin, *middle, *before;
  } ways[] = {{"  File \"", "\", line ", ", in "}, {BOX_SIDE " /", ":", " in "}};
  const char *begin = ways[line.boxed].begin, *middle = ways[line.boxed].middle,
             *before = ways[line.boxed].before;
  char file[sizeof(line.text)];
  const char *end = tscope_begins_with(text, begin) ? strstr(text + strlen(begin), middle) : NULL;
  if (!end)
    return;
  const char *path = text + strlen(begin) - line.boxed; /* its "/" is also the box's */
  size_t bytes = (size_t)(end - path);
  memcpy(file, path, bytes);
  file[bytes] = '\0';
  bool own = tscope_is_own_code(file);
  if (line.own_place && !own)
    return;
  line.own_place = own;
  const char *number = end + strlen(middle);
  size_t digits = strspn(number, "0123456789");
  const char *function =
      tscope_begins_with(number + digits, before) ? number + digits + strlen(before) : "";
  int n = line.boxed ? (int)strcspn(function, " ") : 100;
  snprintf(line.place, sizeof(line.place), "%.*s\n%.*s\n%.380s", MIN(n, 100), function,
           (int)MIN(digits, 9), number, bytes > 380 ? file + bytes - 380 : file);
}

/* PyTorch raises an exception of a data loader's worker or of a replica once more where it waits
 * for it: "KeyError: Caught KeyError in DataLoader worker process 1.", then the original traceback.
 * What that ends with is the exception; where it was caught is told behind it. */
static void keep_exception(struct tscope_file_header *header, const char *text) {
  static const char caught[] = ": Caught ";
  const char *words = line.first[0] ? links[line.link].words : "";
  int room = (int)(sizeof(header->exception) - 1 - strlen(words) - strlen(line.first));
  char before[sizeof(header->exception)];
  memcpy(before, header->exception, sizeof(before));
  before[sizeof(before) - 1] = '\0';
  const char *where = line.original ? strstr(before, caught) : NULL;
  where = where ? strchr(where + strlen(caught), ' ') : NULL;
  size_t n = where ? strcspn(where + 1, ".") : 0;
  if (n)
    snprintf(header->exception, sizeof(header->exception), "%.*s (%.*s)%s%s", room - 103, text,
             (int)MIN(n, 100), where + 1, words, line.first);
  else
    snprintf(header->exception, sizeof(header->exception), "%.*s%s%s", room, text, words,
             line.first);
  memcpy(header->exception_place, line.place, sizeof(header->exception_place));
}

/* What Python writes between the exceptions of a chain. The first one is kept that was raised in
 * the user's own code. */
static bool read_link(const struct tscope_file_header *header, const char *text) {
  for (u32 i = 0; i < LENGTH_OF(links); i++) {
    if (strcmp(text, links[i].line) != 0)
      continue;
    const char *number = strchr(line.place, '\n'), *file = number ? strchr(number + 1, '\n') : NULL;
    if (!line.first[0] || i == TSCOPE_LINK_HANDLING)
      line.link = i; /* one that was only handled in between is no direct cause */
    line.linked = true;
    if (!line.first[0] && line.own_place && file)
      snprintf(line.first, sizeof(line.first), "%.110s, at %.40s:%.*s (%.*s)", header->exception,
               tscope_file_of(file + 1), (int)(file - number - 1), number + 1,
               (int)(number - line.place), line.place);
    return true;
  }
  return false;
}

static void keep_last_line(const char *text) {
  size_t n = strnlen(text, 250);
  memcpy(last.text, text, n);
  last.text[n] = '\0';
  last.ticks = tscope_ticks();
}

static bool begins_traceback(const char *text) {
  static const char what[] = "Traceback (most recent call last)";
  bool boxed = tscope_begins_with(text, BOX_CORNER),
       original = tscope_begins_with(text, "Original ");
  bool inside = boxed || original || tscope_begins_with(text, "  + Exception Group ");
  if (!(inside ? strstr(text, what) != NULL : tscope_begins_with(text, what)))
    return false;
  line.boxed = boxed;
  line.original = original;
  return true;
}

/* Frames of a traceback are indented, or in a box; the line after them is the exception. A group's
 * have a bar before them. */
static void finish_line(void) {
  if (!line.n)
    return;
  line.text[scalar_line_clean(line.text, line.n)] = '\0'; /* Python colours them on a terminal */
  struct tscope_file_header *header = tscope_trace.header;
  const char *text = skip_rank(line.text);
  if (line.in_traceback && tscope_begins_with(text, "  | "))
    text += 4;
  bool of_frames =
      *text == ' ' || tscope_begins_with(text, BOX_SIDE) || tscope_begins_with(text, BOX_FOOT);
  if (!(line.in_traceback && of_frames) && begins_traceback(text)) {
    line.in_traceback = true;
    if (!line.linked)
      line.first[0] = '\0';
    line.own_place = line.linked = false;
    line.place[0] = '\0';
  } else if (line.in_traceback && of_frames) {
    read_frame(text);
  } else if (line.in_traceback && *text) {
    line.in_traceback = false;
    header->exception_ticks = 0;
    keep_exception(header, text);
    __atomic_store_n(&header->exception_ticks, tscope_ticks(), __ATOMIC_RELEASE);
  } else if (*text && !read_link(header, text)) {
    keep_last_line(text);
  }
  line.n = 0;
}

/* Of much text only the end is read, from the beginning of a line on: the job waits meanwhile, and
 * what comes last counts. */
static const char *skip_to_end(const char *text, const char *end) {
  const size_t most = 64 << 10;
  if ((size_t)(end - text) <= most)
    return text;
  const char *before = memchr(end - most, '\n', most);
  line.n = 0;
  line.in_traceback = line.linked = false;
  return before ? before + 1 : end - most;
}

void tscope_end_read_stderr(const char *text, size_t bytes) {
  const char *end = text + bytes, *stop;
  if (__atomic_exchange_n(&line.busy, true, __ATOMIC_ACQUIRE))
    return;
  for (text = skip_to_end(text, end); text < end; text = stop + 1) {
    stop = memchr(text, '\n', (size_t)(end - text));
    size_t n = (size_t)((stop ? stop : end) - text), room = sizeof(line.text) - 1 - line.n;
    n = MIN(n, room);
    memcpy(line.text + line.n, text, n);
    line.n += (u32)n;
    if (!stop)
      break;
    finish_line();
  }
  __atomic_store_n(&line.busy, false, __ATOMIC_RELEASE);
}
