/* SPDX-License-Identifier: MIT */
#include "callsites/watched_stack.h"

#include "callsites/frame_spans.h"
#include "inspect/memory_window.h"

enum {
  CODE_BYTES = 216,
  TABLE_BYTES = 64,    /* of a line table, what is compared; behind its size */
  BEFORE_BYTES = 2048, /* read before a frame: from 3.11 on its callers are there */
  CODES = 1024,        /* whose tags are kept */
  MOST_CODES = 192,    /* that are read: of the innermost frames */
  MOMENTS = 3,         /* looks in a row that must agree */
  MOST_LOOKS = 8,      /* at a stack that changes */
  HOLDER_BYTES = PYTHON_GIL_LOCKED + 8 - PYTHON_GIL_HOLDER,
};

/* A code object without a number of its own: its tag is a hash of its line table, which is not
 * computed again while the table's beginning is the same. */
struct tagged_code {
  u64 code, lines, words, beginning;
  u64 tag;
};
static struct tagged_code tagged_codes[CODES];

/* What one system call has read. */
static struct {
  const u8 *thread_id, *first, *cframe, *collecting, *holder;
  const u8 *first_again, *cframe_again; /* the last that are read */
  struct {
    const u8 *code, *table;
    struct tagged_code *tagged;
  } frames[MOST_CODES];
  struct frame_spans spans;
} pieces;

/* The frames of a look: `n` heads, from the innermost out. */
struct path {
  bool more;    /* there are further ones */
  bool running; /* no frame among them is known to have ended */
  bool apart;   /* some were not read in the same system call as the others */
  u32 n;
  struct frame_head heads[MAX_WATCHED_FRAMES];
};
static struct path first_path, second_path;

static u64 word_at(const u8 *bytes) {
  u64 word;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

static bool fits(u32 offset, u32 bytes, u32 size) {
  return offset == PYTHON_NONE || offset + bytes <= size;
}

/* Whether the structures of this version are not larger than what is read of them. */
static bool is_read_whole(void) {
  const struct python_layout *layout = &python_here.layout;
  return fits(layout->frame_code, 8, FRAME_HEAD_BYTES) &&
         fits(layout->frame_previous, 8, FRAME_HEAD_BYTES) &&
         fits(layout->frame_instruction, 8, FRAME_HEAD_BYTES) &&
         fits(layout->frame_owner, 1, FRAME_HEAD_BYTES) &&
         fits(layout->frame_state, 1, FRAME_HEAD_BYTES) && fits(layout->code_file, 8, CODE_BYTES) &&
         fits(layout->code_name, 8, CODE_BYTES) && fits(layout->code_lines, 8, CODE_BYTES) &&
         fits(layout->code_first_line, 4, CODE_BYTES) &&
         fits(layout->code_version, 4, CODE_BYTES) &&
         fits(layout->code_first_traceable, 4, CODE_BYTES);
}

static struct frame_head head_of(u64 at, const u8 *bytes) {
  const struct python_layout *layout = &python_here.layout;
  struct frame_head head = {.at = at,
                            .previous = word_at(bytes + layout->frame_previous),
                            .code = word_at(bytes + layout->frame_code) & ~(u64)3,
                            .instruction = word_at(bytes + layout->frame_instruction)};
  if (layout->code_start == PYTHON_NONE)
    head.instruction = (u32)head.instruction;
  if (layout->frame_owner != PYTHON_NONE)
    head.owner = bytes[layout->frame_owner];
  return head;
}

/* A frame without a caller: the thread's first one. From 3.12 on that is an entry of the
 * interpreter's own, before that no generator: one that is suspended has no caller. */
static bool may_be_outermost(const struct frame_head *head) {
  const u32 first_with_entries = 12;
  return python_here.layout.minor >= first_with_entries ? head->owner >= PYTHON_OWNED_BY_C
                                                        : head->owner != PYTHON_OWNED_BY_GENERATOR;
}

/* Before 3.11 a frame that has ended stays in a list of free ones, where `previous` leads to the
 * next free one. When its place is taken by a new frame while it is read, everything else looks as
 * if nothing had happened. */
static bool is_running(const struct frame_head *head, const u8 *bytes) {
  const struct python_layout *layout = &python_here.layout;
  if (layout->frame_state == PYTHON_NONE)
    return head->previous || may_be_outermost(head);
  u8 state = bytes[layout->frame_state];
  if (layout->lines == PYTHON_LNOTAB)
    return state != 0; /* f_executing, of 3.9 */
  return state == PYTHON_FRAME_EXECUTING || state == PYTHON_FRAME_UNWINDING;
}

static bool same_head(const struct frame_head *a, const struct frame_head *b) {
  return a->at == b->at && a->previous == b->previous && a->code == b->code &&
         a->instruction == b->instruction && a->owner == b->owner;
}

static bool is_python(const struct frame_head *head) {
  return head->owner < PYTHON_OWNED_BY_C;
}

/* From 3.15 on a thread without Python frames has still the interpreter's outermost entry. */
static bool has_python(const struct path *path) {
  for (u32 i = 0; i < path->n; i++)
    if (is_python(&path->heads[i]))
      return true;
  return false;
}

static struct tagged_code *tagged_slot(u64 code) {
  return &tagged_codes[python_mix(0, code) % CODES];
}

static bool has_numbers(void) {
  return python_here.layout.code_version != PYTHON_NONE;
}

/* Asks for the code of these frames. */
static bool add_codes(struct memory_gather *gather, const struct frame_head *heads, u32 n) {
  for (u32 i = 0; i < n && i < MOST_CODES; i++) {
    pieces.frames[i].code = pieces.frames[i].table = NULL;
    if (!is_python(&heads[i]))
      continue;
    pieces.frames[i].code = memory_gather_add(gather, heads[i].code, CODE_BYTES);
    struct tagged_code *tagged = tagged_slot(heads[i].code);
    pieces.frames[i].tagged = tagged;
    if (!has_numbers() && tagged->code == heads[i].code)
      pieces.frames[i].table = memory_gather_add(gather, tagged->lines + PYTHON_VAR_SIZE,
                                                 PYTHON_BYTES_DATA - PYTHON_VAR_SIZE + TABLE_BYTES);
    if (!pieces.frames[i].code)
      return false;
  }
  return true;
}

static bool add_top(struct memory_gather *gather, const struct watched_stack *watched,
                    const u8 **first, const u8 **cframe) {
  const struct python_layout *layout = &python_here.layout;
  *first = memory_gather_add(gather, watched->state + layout->thread_frame, 8);
  *cframe = layout->cframe_frame == PYTHON_NONE || !watched->cframe
                ? NULL
                : memory_gather_add(gather, watched->cframe + layout->cframe_frame, 8);
  return *first;
}

/* Reads the thread's state and these frames. The kernel copies the pieces in this order: between
 * the first look at the innermost frame and the last one there is nothing but the heads. */
static bool read_moment(struct watched_stack *watched, struct memory_gather *gather,
                        const struct frame_head *heads, u32 n) {
  const struct python_layout *layout = &python_here.layout;
  memory_gather_begin(gather);
  pieces.thread_id = memory_gather_add(gather, watched->state + layout->thread_id, 8);
  pieces.collecting =
      memory_gather_add(gather, watched->interpreter + layout->collecting, sizeof(i32));
  pieces.holder = watched->holder ? memory_gather_add(gather, watched->holder, HOLDER_BYTES) : NULL;
  return add_codes(gather, heads, n) && add_top(gather, watched, &pieces.first, &pieces.cframe) &&
         frame_spans_add(&pieces.spans, gather, heads, n) &&
         add_top(gather, watched, &pieces.first_again, &pieces.cframe_again) &&
         memory_gather_read(gather, watched->pid);
}

/* Whether all frames were read together, the thread was in the same frame when the last piece was
 * read as at the first, and none of its frames had ended: in between, it may have left frames and
 * begun others in their places. */
static bool is_one_moment(const struct path *path) {
  return path->running && !path->apart && word_at(pieces.first) == word_at(pieces.first_again) &&
         (!pieces.cframe_again || word_at(pieces.cframe) == word_at(pieces.cframe_again));
}

/* Address of the innermost frame, 0 if there is none. `apart`: it was not read with the others. */
static bool read_top(struct watched_stack *watched, struct memory_gather *gather, u64 *top,
                     bool *apart) {
  const struct python_layout *layout = &python_here.layout;
  *top = word_at(pieces.first);
  if (layout->cframe_frame == PYTHON_NONE || !*top)
    return true;
  bool same = *top == watched->cframe && pieces.cframe;
  *apart = !same;
  watched->cframe = *top;
  const u8 *frame =
      same ? pieces.cframe
           : memory_gather_one(gather, watched->pid, watched->cframe + layout->cframe_frame, 8);
  *top = frame ? word_at(frame) : 0;
  return frame;
}

/* Frames that were read one by one, with what lies before them on the same page. */
struct page_part {
  u64 begin, end;
  u8 bytes[BEFORE_BYTES + FRAME_HEAD_BYTES];
};

/* Any number may stand where an address is expected: the thread runs, and its memory is used for
 * other things meanwhile. */
static const u8 *read_head(struct memory_gather *gather, pid_t pid, u64 at,
                           struct page_part *part) {
  u64 bytes_here = part->end - part->begin;
  if (bytes_here && at >= part->begin && at - part->begin <= bytes_here - FRAME_HEAD_BYTES)
    return part->bytes + (at - part->begin);
  u64 before = python_here.layout.code_start == PYTHON_NONE ? 0 : at % 4096;
  before = before > BEFORE_BYTES ? BEFORE_BYTES : before & ~(u64)7;
  const u8 *bytes = memory_gather_one(gather, pid, at - before, before + FRAME_HEAD_BYTES);
  if (!bytes)
    return NULL;
  part->begin = at - before;
  part->end = at + FRAME_HEAD_BYTES;
  memcpy(part->bytes, bytes, before + FRAME_HEAD_BYTES);
  return part->bytes + before;
}

/* Follows the frames from `top` outwards: those that were not read with the others are read now. */
static bool follow(struct path *path, struct memory_gather *gather, pid_t pid, u64 top) {
  static struct page_part part;
  bool has_state = python_here.layout.frame_state != PYTHON_NONE;
  u32 from = 0;
  u64 next;
  path->n = 0;
  path->running = true;
  part.begin = part.end = 0;
  for (u64 at = top; at && path->n < MAX_WATCHED_FRAMES; at = next) {
    struct frame_head *head = &path->heads[path->n];
    const u8 *bytes = frame_spans_head(&pieces.spans, at, &from);
    path->apart |= !bytes;
    if (!bytes)
      bytes = read_head(gather, pid, at, &part);
    if (!bytes)
      return false;
    *head = head_of(at, bytes);
    next = head->previous;
    bool running = is_running(head, bytes);
    if (at == top && has_state && !running) /* it is about to begin or to end */
      continue;
    path->running = path->running && running;
    path->n++;
  }
  path->more = path->n == MAX_WATCHED_FRAMES && path->heads[path->n - 1].previous;
  return true;
}

/* How many frames of both, from the outermost inwards, are the same. */
static u32 count_same(const struct path *a, const struct path *b) {
  u32 same = 0;
  while (same < a->n && same < b->n &&
         same_head(&a->heads[a->n - 1 - same], &b->heads[b->n - 1 - same]))
    same++;
  return same;
}

/* A frame further in than all that are the same; it ran in between. Its function is certain if the
 * position in the function is a pointer that can be checked. */
static bool is_same_function(const struct path *a, const struct path *b, u32 same) {
  if (same >= a->n || same >= b->n || python_here.layout.code_start == PYTHON_NONE)
    return false;
  const struct frame_head *x = &a->heads[a->n - 1 - same], *y = &b->heads[b->n - 1 - same];
  return x->at == y->at && x->code == y->code && x->owner == y->owner;
}

struct frame_pieces {
  u64 frame, code_at;
  const u8 *head, *code;
};

static bool read_piece(const void *context, u64 address, void *to, size_t bytes) {
  const struct frame_pieces *frame = context;
  u64 in_code = address - frame->code_at, in_head = address - frame->frame;
  if (in_code + bytes <= CODE_BYTES)
    memcpy(to, frame->code + in_code, bytes);
  else if (in_head + bytes <= FRAME_HEAD_BYTES)
    memcpy(to, frame->head + in_head, bytes);
  else
    return false;
  return true;
}

/* Of a line table: its size and first bytes. */
static u64 beginning_of(const u8 *table) {
  const u32 data = PYTHON_BYTES_DATA - PYTHON_VAR_SIZE;
  u64 size = word_at(table), hash = size;
  for (u32 i = 0; i < TABLE_BYTES && i < size; i += 8) {
    u64 word = word_at(table + data + i);
    if (size - i < 8)
      word &= (1ull << 8 * (size - i)) - 1;
    hash = python_mix(hash, word);
  }
  return hash;
}

/* Reads the table through the kernel, some hundred bytes at a time. */
static bool tag_anew(pid_t pid, u64 code, struct tagged_code *tagged) {
  static struct memory_window window;
  u8 table[PYTHON_BYTES_DATA - PYTHON_VAR_SIZE + TABLE_BYTES];
  memory_window_open(&window, pid);
  tagged->code = 0;
  if (!python_tag(&python_here, python_read_window, &window, code, &tagged->tag) ||
      !python_read_window(&window, code + python_here.layout.code_lines, &tagged->lines, 8) ||
      !python_read_window(&window, tagged->lines + PYTHON_VAR_SIZE, table, sizeof(table)))
    return false;
  tagged->code = code;
  tagged->beginning = beginning_of(table);
  return true;
}

/* What of the code object would differ if another one had its address. */
static u64 words_of(const u8 *code) {
  const struct python_layout *layout = &python_here.layout;
  u64 words = python_mix(word_at(code + layout->code_file), word_at(code + layout->code_name));
  u32 first_line;
  memcpy(&first_line, code + layout->code_first_line, sizeof(first_line));
  return python_mix(words, first_line);
}

/* The same as python_tag(). */
static bool tag_of(const struct watched_stack *watched, u32 i, const struct frame_pieces *frame,
                   u64 *tag) {
  if (has_numbers() && python_tag(&python_here, read_piece, frame, frame->code_at, tag))
    return true;
  struct tagged_code *tagged = pieces.frames[i].tagged;
  u64 words = words_of(frame->code);
  bool same = tagged->code == frame->code_at && pieces.frames[i].table && tagged->words == words &&
              tagged->lines == word_at(frame->code + python_here.layout.code_lines) &&
              tagged->beginning == beginning_of(pieces.frames[i].table);
  if (!same && !tag_anew(watched->pid, frame->code_at, tagged))
    return false;
  tagged->words = words;
  *tag = tagged->tag;
  return true;
}

static bool put_frame(const struct watched_stack *watched, u32 i, const struct frame_head *head,
                      u32 *from, struct stack_walk *walk) {
  struct python_frame *frame = &walk->frames[walk->n];
  if (!is_python(head))
    return true;
  const struct frame_pieces pieces_of = {.frame = head->at,
                                         .code_at = head->code,
                                         .head = frame_spans_head(&pieces.spans, head->at, from),
                                         .code = pieces.frames[i].code};
  switch (python_read_frame(&python_here, read_piece, &pieces_of, head->at, frame)) {
  case PYTHON_UNREADABLE:
    return false;
  case PYTHON_END: /* it has not begun, so it calls nothing yet */
    walk->n = 0;
    return true;
  case PYTHON_FRAME:
    break;
  }
  if (!tag_of(watched, i, &pieces_of, &frame->tag))
    return false;
  walk->keys[walk->n++] = frame_key(frame);
  return true;
}

/* The `n` outermost frames of the path whose pieces were read, at most as many as a walk holds: the
 * innermost of them. */
static bool put_frames(const struct watched_stack *watched, const struct path *path, u32 n,
                       struct stack_walk *walk) {
  u32 from = 0, most = MIN(path->n, MOST_CODES);
  walk->n = 0;
  walk->more = path->more || most < path->n;
  for (u32 i = path->n - n; i < most; i++) {
    walk->more |= walk->n == MAX_STACK_FRAMES && is_python(&path->heads[i]);
    if (walk->n < MAX_STACK_FRAMES && !put_frame(watched, i, &path->heads[i], &from, walk))
      return false;
  }
  return walk->n;
}

static void read_interpreter(struct watched_moment *moment) {
  const u32 locked_at = PYTHON_GIL_LOCKED - PYTHON_GIL_HOLDER;
  i32 collecting, locked = 0;
  memcpy(&collecting, pieces.collecting, sizeof(collecting));
  *moment = (struct watched_moment){.collecting = collecting == 1};
  if (!pieces.holder)
    return;
  memcpy(&locked, pieces.holder + locked_at, sizeof(locked));
  if (python_here.layout.gil_thread != PYTHON_NONE || locked == 1)
    moment->gil_holder = word_at(pieces.holder);
}

static bool is_as_before(const struct watched_stack *watched, const struct path *path) {
  return path->n && watched->whole && is_one_moment(path) && path->n == watched->n &&
         memcmp(path->heads, watched->heads, path->n * sizeof(*path->heads)) == 0;
}

/* One look, and the frames that it shows; `pieces` are those of `heads`. False if they cannot be
 * read, or one of them has ended: then it says nothing. Neither does a look at a generator that has
 * given its value meanwhile: it has no caller then. */
static bool look(struct watched_stack *watched, struct memory_gather *gather,
                 const struct frame_head *heads, u32 n, struct path *path) {
  u64 top;
  path->n = 0;
  path->apart = false;
  if (!read_moment(watched, gather, heads, n))
    return false;
  if (word_at(pieces.thread_id) != watched->thread_id)
    watched->state = 0;
  return watched->state && read_top(watched, gather, &top, &path->apart) &&
         follow(path, gather, watched->pid, top) && path->running && (path->n || !top);
}

/* What looks in a row have shown, from the outermost frame inwards. */
struct agreement {
  u32 same;           /* frames that did not change */
  bool same_function; /* the next one further in has moved on in its function */
};

static void agree(struct agreement *agreement, const struct path *a, const struct path *b) {
  u32 same = count_same(a, b);
  if (same > agreement->same)
    return;
  agreement->same_function =
      is_same_function(a, b, same) && (same < agreement->same || agreement->same_function);
  agreement->same = same;
}

static void believe_outermost(struct watched_stack *watched, u64 at) {
  memmove(watched->outermost + 1, watched->outermost,
          sizeof(watched->outermost) - sizeof(*watched->outermost));
  watched->outermost[0] = at;
}

static bool is_believed(const struct watched_stack *watched, u64 at) {
  u32 i = 0;
  while (i < MAX_OUTERMOST && watched->outermost[i] != at)
    i++;
  return i < MAX_OUTERMOST;
}

/* Entries of the interpreter lie on the stack of C, where something else may lie by the time they
 * are read, and a chain of frames may seem to end there. So another outermost frame than before is
 * believed when some reads in a row have found it. */
static bool is_outermost(struct watched_stack *watched, u64 at) {
  const u32 enough = 3;
  if (is_believed(watched, at)) {
    watched->times_other = 0;
    return true;
  }
  watched->times_other = at == watched->other_outermost ? watched->times_other + 1 : 1;
  watched->other_outermost = at;
  if (watched->outermost[0] && watched->times_other < enough)
    return false;
  believe_outermost(watched, at);
  return true;
}

/* Looks at one stack, one after the other. */
struct looks {
  struct path *before, *now; /* the last two that were good; `pieces` are those of `before` */
  u32 in_row;                /* the last ones that were each of one moment */
  struct agreement row, all; /* of those, and of all that were good */
};

static void begin_looks(struct looks *looks) {
  const struct agreement everything = {.same = MAX_WATCHED_FRAMES};
  *looks = (struct looks){.now = &first_path, .row = everything, .all = everything};
  looks->in_row = is_one_moment(looks->now);
}

/* False if it was not good. */
static bool look_again(struct looks *looks, struct watched_stack *watched,
                       struct memory_gather *gather) {
  struct path *next = looks->now == &first_path ? &second_path : &first_path;
  if (!look(watched, gather, looks->now->heads, looks->now->n, next)) {
    looks->in_row = 0;
    return false;
  }
  looks->before = looks->now;
  looks->now = next;
  agree(&looks->all, looks->before, next);
  if (looks->in_row)
    agree(&looks->row, looks->before, next);
  else
    looks->row.same = MAX_WATCHED_FRAMES;
  looks->in_row = is_one_moment(next) ? looks->in_row + 1 : 0;
  return true;
}

/* Further looks at a stack that has changed since the last time, until some in a row are each of
 * one moment. What is the same in them counts. A thread that calls and returns all the time may
 * have none: then what was the same in all looks does. */
static bool compare(struct watched_stack *watched, struct memory_gather *gather,
                    struct stack_walk *walk) {
  struct looks looks;
  bool good = false;
  begin_looks(&looks);
  for (u32 i = 0; (i < MOST_LOOKS || !good) && i < 2 * MOST_LOOKS && looks.in_row < MOMENTS; i++) {
    good = look_again(&looks, watched, gather);
    if (!watched->state)
      return false;
  }
  if (!good)
    return false;
  const struct path *before = looks.before, *now = looks.now;
  const struct agreement *found = looks.in_row == MOMENTS ? &looks.row : &looks.all;
  watched->whole = looks.in_row == MOMENTS && found->same == before->n && found->same == now->n;
  watched->n = now->n;
  memcpy(watched->heads, now->heads, now->n * sizeof(*now->heads));
  if (before->more || now->more) /* there is no outermost frame to begin at */
    return watched->whole && put_frames(watched, before, before->n, walk);
  return found->same && is_outermost(watched, now->heads[now->n - 1].at) &&
         put_frames(watched, before, found->same + found->same_function, walk);
}

bool watched_stack_read(struct watched_stack *watched, struct memory_gather *gather,
                        struct stack_walk *walk, struct watched_moment *moment) {
  bool good = false;
  for (u32 i = 0; i < MOST_LOOKS && !good && watched->state; i++) {
    good = look(watched, gather, watched->heads, watched->n, &first_path);
    watched->n = good || first_path.n ? watched->n : 0; /* memory that is not there any more */
  }
  if (!good)
    return false;
  read_interpreter(moment);
  moment->no_frames = !has_python(&first_path);
  if (is_as_before(watched, &first_path))
    return put_frames(watched, &first_path, first_path.n, walk);
  return !moment->no_frames && compare(watched, gather, walk);
}

static bool read_word(const struct watched_stack *watched, struct memory_gather *gather,
                      u64 address, u64 *word) {
  const u8 *bytes = memory_gather_one(gather, watched->pid, address, sizeof(*word));
  *word = bytes ? word_at(bytes) : 0;
  return bytes;
}

bool watched_stack_begin(struct watched_stack *watched, struct memory_gather *gather, pid_t pid,
                         u64 state, u64 runtime) {
  const struct python_layout *layout = &python_here.layout;
  u64 gil;
  *watched = (struct watched_stack){.pid = pid, .state = state};
  if (!is_read_whole() ||
      !read_word(watched, gather, state + layout->thread_id, &watched->thread_id) ||
      !read_word(watched, gather, state + layout->thread_interpreter, &watched->interpreter) ||
      !watched->interpreter)
    return false;
  if (layout->gil_thread != PYTHON_NONE) { /* a word behind the GIL */
    watched->holder = runtime + layout->gil_thread;
    watched->gil_lock = watched->holder - 8 - GIL_LOCK_BYTES;
  } else if (read_word(watched, gather, watched->interpreter + layout->gil, &gil) && gil) {
    watched->holder = gil + PYTHON_GIL_HOLDER;
    watched->gil_lock = gil;
  }
  return true;
}
