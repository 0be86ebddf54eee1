/* SPDX-License-Identifier: MIT
 *
 * The pickle machine: a stack of values, marks in it, and a memo of what may be referred to again.
 * Python's Lib/pickletools.py describes every instruction.
 */
#include "import/pickle/pickle.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/vector.h"
#include "import/file_budget.h"
#include "import/value_build.h"

#define NEWEST_PROTOCOL 5
#define MARKED UINT32_MAX /* not a number of values, but all above a mark */

struct machine {
  const u8 *start, *at, *end;
  struct value_builder builder;
  VECTOR(struct value) stack;
  VECTOR(u32) marks;         /* an instruction may not reach below this in the stack */
  VECTOR(struct value) memo; /* kind 0 where there is none */
  u32 memoized;
  bool stopped;
  char *why;
  size_t why_bytes;
};

/* What is done at one byte of the pickle. */
struct instruction {
  int (*run)(struct machine *, const struct instruction *);
  u32 n; /* bytes of its argument, or values of the stack */
  enum value_kind kind;
  const char *what; /* it asks for, if that is refused */
};

static int fail(struct machine *m, const char *reason) {
  snprintf(m->why, m->why_bytes, "cannot be read: byte %td of the pickle: %s", m->at - m->start,
           reason);
  return -EBADMSG;
}

/* Explains what a function of value_build.h refused. */
static int explain_error(struct machine *m, int error, const char *what) {
  return error ? fail(m, what) : 0;
}

/* Copies a name of the file for a message: printable, and not long. */
static size_t quote(char *out, size_t room, const char *name, size_t n) {
  size_t i = 0;
  for (; i < n && i + 1 < room; i++)
    out[i] = (char)(isgraph((unsigned char)name[i]) ? name[i] : '?');
  out[i] = 0;
  return i;
}

static int refuse(struct machine *m, const char *what, const char *module, size_t module_bytes,
                  const char *name, size_t name_bytes) {
  char named[100];
  size_t n = quote(named, 50, module, module_bytes);
  named[n++] = '.';
  quote(named + n, 49, name, name_bytes);
  snprintf(m->why, m->why_bytes,
           "cannot be read: byte %td of the pickle: %s asks for %s; only plain data is read, no "
           "code is run",
           m->at - m->start, what, named);
  return -EPERM;
}

static int refuse_instruction(struct machine *m, const struct instruction *in) {
  snprintf(m->why, m->why_bytes,
           "cannot be read: byte %td of the pickle: %s; only plain data is read, no code is run",
           m->at - m->start, in->what);
  return -EPERM;
}

static size_t bytes_left(const struct machine *m) {
  return (size_t)(m->end - m->at);
}

static bool read_number(struct machine *m, u32 bytes, u64 *value) {
  if (bytes_left(m) < bytes)
    return false;
  *value = 0;
  for (u32 i = 0; i < bytes; i++)
    *value |= (u64)m->at[i] << (8 * i);
  m->at += bytes;
  return true;
}

/* The text up to the next newline, which is read too. */
static bool read_line(struct machine *m, const char **line, size_t *n) {
  const u8 *newline = memchr(m->at, '\n', bytes_left(m));
  if (!newline)
    return false;
  *line = (const char *)m->at;
  *n = (size_t)(newline - m->at);
  m->at = newline + 1;
  return true;
}

static int fail_truncated(struct machine *m) {
  return fail(m, "the file ends inside an instruction; it was not fully written");
}

static u32 stack_floor(const struct machine *m) {
  return m->marks.n ? m->marks.at[m->marks.n - 1] : 0;
}

static int push(struct machine *m, struct value value) {
  VECTOR_PUSH(&m->stack, value);
  return 0;
}

/* The `n` values on top; if that is MARKED, those above the innermost mark, which is removed. They
 * stay readable until a push. */
static int pop(struct machine *m, u32 *n, struct value **values) {
  u32 floor = stack_floor(m);
  if (*n == MARKED) {
    if (m->marks.n == 0)
      return fail(m, "an instruction needs a mark and there is none");
    m->marks.n--;
    *n = m->stack.n - floor;
  } else if (m->stack.n - floor < *n) {
    return fail(m, "an instruction needs more values than there are");
  }
  m->stack.n -= *n;
  *values = m->stack.at ? m->stack.at + m->stack.n : NULL;
  return 0;
}

/* The container on top of the stack, which stays there. */
static struct value *top(struct machine *m, enum value_kind kind) {
  if (m->stack.n == stack_floor(m))
    return NULL;
  struct value *value = &m->stack.at[m->stack.n - 1];
  return value->kind == kind ? value : NULL;
}

/* Indices count what was stored before them, so none exceeds the number of bytes. */
static int memo_put(struct machine *m, u64 index) {
  if (index > (u64)(m->end - m->start))
    return fail(m, "a memo number beyond what the file can hold");
  if (m->stack.n == stack_floor(m))
    return fail(m, "nothing to put into the memo");
  VECTOR_REACH(&m->memo, (u32)index);
  m->memoized += !m->memo.at[index].kind;
  m->memo.at[index] = m->stack.at[m->stack.n - 1];
  return 0;
}

static int memo_get(struct machine *m, u64 index) {
  if (index >= m->memo.n || !m->memo.at[index].kind)
    return fail(m, "a reference to something that was not memoized");
  return push(m, m->memo.at[index]);
}

static int put_into_memo(struct machine *m, const struct instruction *in) {
  u64 index;
  return read_number(m, in->n, &index) ? memo_put(m, index) : fail_truncated(m);
}

static int get_from_memo(struct machine *m, const struct instruction *in) {
  u64 index;
  return read_number(m, in->n, &index) ? memo_get(m, index) : fail_truncated(m);
}

static int memoize(struct machine *m, const struct instruction *in) {
  (void)in;
  return memo_put(m, m->memoized);
}

static int push_constant(struct machine *m, const struct instruction *in) {
  return push(m, (struct value){.kind = in->kind, .boolean = in->n});
}

/* Only one of four bytes can be negative. */
static int push_integer(struct machine *m, const struct instruction *in) {
  u64 word;
  if (!read_number(m, in->n, &word))
    return fail_truncated(m);
  return push(m, (struct value){.kind = VALUE_INT, .integer = (i32)(u32)word});
}

/* A size in `width` bytes, then that many bytes. */
static int read_sized(struct machine *m, u32 width, const u8 **bytes, u32 *n) {
  u64 claimed;
  if (!read_number(m, width, &claimed))
    return fail_truncated(m);
  if (claimed > bytes_left(m))
    return fail(m, "a size beyond the end of the file; it is damaged or was not fully written");
  if (claimed > UINT32_MAX - 1)
    return fail(m, "a single value of more than 4 GiB");
  *bytes = m->at;
  *n = (u32)claimed;
  m->at += claimed;
  return 0;
}

/* The two's complement of an integer, least significant byte first, of up to 64 bits or more. */
static void make_integer(struct value_builder *b, const u8 *bytes, u32 n, struct value *out) {
  bool negative = n && bytes[n - 1] & 0x80;
  u8 sign = negative ? 0xff : 0;
  while (n > 8 && bytes[n - 1] == sign && ((bytes[n - 2] ^ sign) & 0x80) == 0)
    n--;
  if (n > 8) {
    value_make_text(b, VALUE_BIG, (const char *)bytes, n, out);
    return;
  }
  u64 word = 0;
  for (u32 i = 0; i < 8; i++)
    word |= (u64)(i < n ? bytes[i] : sign) << (8 * i);
  *out = (struct value){.kind = VALUE_INT, .integer = (i64)word};
}

/* A text, or an integer. */
static int push_sized(struct machine *m, const struct instruction *in) {
  const u8 *bytes;
  u32 n;
  struct value value;
  int error = read_sized(m, in->n, &bytes, &n);
  if (error)
    return error;
  if (in->kind == VALUE_INT)
    make_integer(&m->builder, bytes, n, &value);
  else
    value_make_text(&m->builder, in->kind, (const char *)bytes, n, &value);
  return push(m, value);
}

static int push_binary_float(struct machine *m, const struct instruction *in) {
  (void)in;
  u64 word;
  if (!read_number(m, 8, &word))
    return fail_truncated(m);
  word = __builtin_bswap64(word);
  struct value value = {.kind = VALUE_FLOAT};
  memcpy(&value.real, &word, sizeof(value.real));
  return push(m, value);
}

/* Values that cannot change later, and so may be in a set or be the key of a dict. */
static bool is_hashable(const struct value *value) {
  return value->kind != VALUE_LIST && value->kind != VALUE_DICT && value->kind != VALUE_SET;
}

static int put_pairs(struct machine *m, struct value *dict, const struct value *pairs, u32 n) {
  if (n % 2)
    return fail(m, "a key without a value");
  for (u32 i = 0; i < n; i += 2)
    if (!is_hashable(&pairs[i]))
      return fail(m, "a list, dict or set as a key");
  return explain_error(m, value_put(&m->builder, dict->items, pairs, n / 2), "too many items");
}

static int put_items(struct machine *m, struct value *to, const struct value *items, u32 n) {
  for (u32 i = 0; to->kind == VALUE_SET && i < n; i++)
    if (!is_hashable(&items[i]))
      return fail(m, "a list, dict or set inside a set");
  return explain_error(m, value_append(&m->builder, to->items, items, n), "too many items");
}

/* A container of `n` values, or MARKED. */
static int push_made(struct machine *m, const struct instruction *in) {
  struct value made, *values;
  u32 n = in->n;
  int error = pop(m, &n, &values);
  if (error)
    return error;
  value_make_items(&m->builder, in->kind, &made);
  error = in->kind == VALUE_DICT ? put_pairs(m, &made, values, n) : put_items(m, &made, values, n);
  return error ? error : push(m, made);
}

/* Adds them to the container below. */
static int add_values(struct machine *m, const struct instruction *in) {
  struct value *values;
  u32 n = in->n;
  int error = pop(m, &n, &values);
  if (error)
    return error;
  struct value *to = top(m, in->kind);
  if (!to)
    return fail(m, "items for a list, dict or set that is not there");
  return in->kind == VALUE_DICT ? put_pairs(m, to, values, n) : put_items(m, to, values, n);
}

static int mark(struct machine *m, const struct instruction *in) {
  (void)in;
  VECTOR_PUSH(&m->marks, m->stack.n);
  return 0;
}

static int stop(struct machine *m, const struct instruction *in) {
  (void)in;
  m->stopped = true;
  return 0;
}

static int pop_and_discard(struct machine *m, const struct instruction *in) {
  struct value *values;
  bool marked = in->n == MARKED || (m->marks.n && m->stack.n == stack_floor(m));
  return pop(m, &(u32){marked ? MARKED : 1}, &values);
}

static int duplicate(struct machine *m, const struct instruction *in) {
  (void)in;
  if (m->stack.n == stack_floor(m))
    return fail(m, "nothing to duplicate");
  return push(m, m->stack.at[m->stack.n - 1]);
}

static int check_protocol(struct machine *m, const struct instruction *in) {
  (void)in;
  u64 protocol;
  if (!read_number(m, 1, &protocol))
    return fail_truncated(m);
  return protocol <= NEWEST_PROTOCOL ? 0 : fail(m, "a protocol newer than 5");
}

/* A frame only promises that so many bytes follow. */
static int check_frame(struct machine *m, const struct instruction *in) {
  (void)in;
  u64 bytes;
  if (!read_number(m, 8, &bytes))
    return fail_truncated(m);
  return bytes <= bytes_left(m) ? 0
                                : fail(m, "the file ends inside a frame; it was not fully written");
}

static int refuse_named(struct machine *m, const struct instruction *in) {
  const char *module, *name;
  size_t module_bytes, name_bytes;
  if (!read_line(m, &module, &module_bytes) || !read_line(m, &name, &name_bytes))
    return fail_truncated(m);
  return refuse(m, in->what, module, module_bytes, name, name_bytes);
}

static int refuse_stacked(struct machine *m, const struct instruction *in) {
  (void)in;
  struct value *names;
  int error = pop(m, &(u32){2}, &names);
  if (error)
    return error;
  const char *module = value_text(&names[0]), *name = value_text(&names[1]);
  return refuse(m, "STACK_GLOBAL", module ? module : "?", module ? names[0].n : 1,
                name ? name : "?", name ? names[1].n : 1);
}

#define REFUSED(text)                                                                              \
  { .run = refuse_instruction, .what = text }

/* By the byte that stands for each; by the names of Python's pickletools. */
static const struct instruction instructions[256] = {
    ['('] = {mark}, /* MARK */
    ['.'] = {stop},
    ['0'] = {pop_and_discard, 1},
    ['1'] = {pop_and_discard, MARKED},
    ['2'] = {duplicate},
    [0x80] = {check_protocol},
    [0x95] = {check_frame},
    ['N'] = {push_constant, 0, VALUE_NONE},
    [0x88] = {push_constant, true, VALUE_BOOL}, /* NEWTRUE, NEWFALSE */
    [0x89] = {push_constant, false, VALUE_BOOL},
    ['J'] = {push_integer, 4}, /* BININT, BININT1, BININT2 */
    ['K'] = {push_integer, 1},
    ['M'] = {push_integer, 2},
    [0x8a] = {push_sized, 1, VALUE_INT}, /* LONG1, LONG4 */
    [0x8b] = {push_sized, 4, VALUE_INT},
    ['G'] = {push_binary_float},
    [0x8c] = {push_sized, 1, VALUE_STR}, /* SHORT_BINUNICODE, BINUNICODE, BINUNICODE8 */
    ['X'] = {push_sized, 4, VALUE_STR},
    [0x8d] = {push_sized, 8, VALUE_STR},
    ['U'] = {push_sized, 1, VALUE_STR}, /* SHORT_BINSTRING, BINSTRING */
    ['T'] = {push_sized, 4, VALUE_STR},
    ['C'] = {push_sized, 1, VALUE_BYTES}, /* SHORT_BINBYTES, BINBYTES, BINBYTES8, BYTEARRAY8 */
    ['B'] = {push_sized, 4, VALUE_BYTES},
    [0x8e] = {push_sized, 8, VALUE_BYTES},
    [0x96] = {push_sized, 8, VALUE_BYTES},
    [']'] = {push_made, 0, VALUE_LIST}, /* EMPTY_LIST, EMPTY_DICT, EMPTY_SET, EMPTY_TUPLE */
    ['}'] = {push_made, 0, VALUE_DICT},
    [0x8f] = {push_made, 0, VALUE_SET},
    [')'] = {push_made, 0, VALUE_TUPLE},
    ['l'] = {push_made, MARKED, VALUE_LIST}, /* LIST, DICT, TUPLE, FROZENSET */
    ['d'] = {push_made, MARKED, VALUE_DICT},
    ['t'] = {push_made, MARKED, VALUE_TUPLE},
    [0x91] = {push_made, MARKED, VALUE_SET},
    [0x85] = {push_made, 1, VALUE_TUPLE}, /* TUPLE1 to TUPLE3 */
    [0x86] = {push_made, 2, VALUE_TUPLE},
    [0x87] = {push_made, 3, VALUE_TUPLE},
    ['a'] = {add_values, 1, VALUE_LIST}, /* APPEND, APPENDS, ADDITEMS, SETITEM, SETITEMS */
    ['e'] = {add_values, MARKED, VALUE_LIST},
    [0x90] = {add_values, MARKED, VALUE_SET},
    ['s'] = {add_values, 2, VALUE_DICT},
    ['u'] = {add_values, MARKED, VALUE_DICT},
    ['q'] = {put_into_memo, 1}, /* BINPUT, LONG_BINPUT, MEMOIZE */
    ['r'] = {put_into_memo, 4},
    [0x94] = {memoize},
    ['h'] = {get_from_memo, 1}, /* BINGET, LONG_BINGET */
    ['j'] = {get_from_memo, 4},

    /* What names or calls something. */
    ['c'] = {refuse_named, .what = "GLOBAL"},
    ['i'] = {refuse_named, .what = "INST"},
    [0x93] = {refuse_stacked},
    ['R'] = REFUSED("REDUCE asks for a call"),
    ['b'] = REFUSED("BUILD asks for an object's state to be set"),
    ['o'] = REFUSED("NEWOBJ asks for an object to be made"), /* OBJ, NEWOBJ, NEWOBJ_EX */
    [0x81] = REFUSED("NEWOBJ asks for an object to be made"),
    [0x92] = REFUSED("NEWOBJ asks for an object to be made"),
    ['P'] = REFUSED("PERSID asks for an object kept elsewhere"), /* PERSID, BINPERSID */
    ['Q'] = REFUSED("PERSID asks for an object kept elsewhere"),
    [0x82 ... 0x84] = REFUSED("EXT asks for a registered extension"),
    [0x97 ... 0x98] = REFUSED("NEXT_BUFFER asks for data kept elsewhere"),
};

static int execute(struct machine *m, u8 byte) {
  const struct instruction *in = &instructions[byte];
  return in->run ? in->run(m, in)
                 : fail(m, "not an instruction; the file is not a pickle, or it is damaged");
}

static int run(struct machine *m, struct value *root) {
  int error = 0;
  while (!error && !m->stopped)
    error = budget_is_over() ? -EFBIG
            : m->at < m->end
                ? execute(m, *m->at++)
                : fail(m, "the file ends before the pickle ends; it was not fully written");
  if (error)
    return error;
  if (m->marks.n || m->stack.n != 1)
    return fail(m, "it ends with more or less than one value");
  error = value_finish(m->stack.at, PICKLE_MOST_DEPTH);
  if (error == -ELOOP)
    return fail(m, "something in it contains itself");
  if (error == -E2BIG)
    return fail(m, "it is nested too deeply");
  if (error)
    return fail(m, "it cannot be read");
  *root = m->stack.at[0];
  return budget_take(BUDGET_EXPANDED, (u64)value_spread(root)) ? 0 : -EFBIG;
}

int pickle_read(const void *bytes, size_t n, struct arena *arena, struct value *root, char *why,
                size_t why_bytes) {
  struct machine m = {.start = bytes,
                      .at = bytes,
                      .end = (const u8 *)bytes + n,
                      .builder = {.arena = arena},
                      .why = why,
                      .why_bytes = why_bytes};
  int error = run(&m, root);
  FREE_EACH(&m, stack.at, marks.at, memo.at);
  value_builder_release(&m.builder);
  return error;
}

bool pickle_looks_like(const void *bytes, size_t n) {
  const u8 *at = bytes;
  return n >= 2 && at[0] == 0x80 /* PROTO */ && at[1] >= 2 && at[1] <= NEWEST_PROTOCOL;
}
