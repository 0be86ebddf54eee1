/* SPDX-License-Identifier: MIT
 *
 * The entries of one dump. Versions 2.x added and removed fields; a missing field is unknown.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/flight_recorder/flight_recorder.h"
#include "kernels/communication.h"

/* More tensors or dimensions than any collective has; longer lists of sizes are cut, and end in
 * "...". */
#define MOST_SIZES_TEXT 512u

/* Sizes as a text such as [[4096, 5120], [8]], and the elements of all tensors together. */
struct sizes {
  char text[MOST_SIZES_TEXT];
  u32 used;
  u64 elements;
};

static void put_size(struct sizes *sizes, const char *text) {
  size_t n = strlen(text);
  if (sizes->used + n + 4 > sizeof(sizes->text)) {
    memcpy(sizes->text + sizes->used, "...", 4);
    return;
  }
  memcpy(sizes->text + sizes->used, text, n + 1);
  sizes->used += (u32)n;
}

static void put_tensor(struct sizes *sizes, const struct value *tensor) {
  u64 elements = 1;
  put_size(sizes, "[");
  for (u32 i = 0; i < value_count(tensor); i++) {
    i64 size = 0;
    char text[24];
    value_integer(value_item(tensor, i), &size);
    snprintf(text, sizeof(text), i ? ", %lld" : "%lld", (long long)size);
    put_size(sizes, text);
    if (size < 0 || __builtin_mul_overflow(elements, (u64)size, &elements))
      elements = UINT64_MAX;
  }
  put_size(sizes, "]");
  if (__builtin_add_overflow(sizes->elements, elements, &sizes->elements))
    sizes->elements = UINT64_MAX;
}

/* NULL text where the recorder did not write sizes. */
static const char *read_sizes(struct draft *draft, const struct value *value, u64 *elements) {
  struct sizes sizes = {.used = 0};
  if (!value_is_sequence(value) || value_count(value) == 0)
    return NULL;
  put_size(&sizes, "[");
  for (u32 i = 0; i < value_count(value); i++) {
    if (i)
      put_size(&sizes, ", ");
    put_tensor(&sizes, value_item(value, i));
  }
  put_size(&sizes, "]");
  *elements = sizes.elements;
  return draft_keep_text(draft, sizes.text, strlen(sizes.text));
}

/* One name if all tensors have the same type, else all names. */
static const char *read_types(struct draft *draft, const struct value *value) {
  char all[256];
  size_t used = 0;
  const char *last = NULL;
  for (u32 i = 0; i < value_count(value); i++) {
    const char *type = value_text(value_item(value, i));
    if (!type || (last && strcmp(type, last) == 0))
      continue;
    int more = snprintf(all + used, sizeof(all) - used, last ? ", %s" : "%s", type);
    used += (size_t)more < sizeof(all) - used ? (size_t)more : sizeof(all) - used - 1;
    last = type;
  }
  return last ? draft_keep_text(draft, all, used) : NULL;
}

static i64 number_at(const struct value *entry, const char *key, i64 otherwise) {
  i64 number = otherwise;
  value_integer(value_get(entry, key), &number);
  return number;
}

/* The recorder does not see calls of gloo begin or end; it only retires them. */
static u8 read_state(const struct value *entry, const char *name) {
  const char *state = value_text(value_get(entry, "state"));
  if (text_starts_with(name, "gloo:") && value_is_true(value_get(entry, "retired")))
    return FLIGHT_COMPLETED;
  if (!state)
    return FLIGHT_CALLED;
  if (!strcmp(state, "completed"))
    return FLIGHT_COMPLETED;
  if (!strcmp(state, "started"))
    return FLIGHT_STARTED;
  return FLIGHT_SCHEDULED;
}

static const char *text_at(struct draft *draft, const struct value *frame, const char *key) {
  const struct value *text = value_get(frame, key);
  return value_text(text) ? draft_keep_text(draft, text->text, text->n) : NULL;
}

static bool is_stack(const struct flight_stack *stack, const struct call_frame *frames, u32 n) {
  return stack->n == n && !ANY_NUMBER(0, n, i, !call_frame_is_same(&stack->frames[i], &frames[i]));
}

#define MOST_FRAMES 256u

static const struct flight_stack *read_stack(struct draft *draft, const struct value *value) {
  struct call_frame frames[MOST_FRAMES];
  u32 n = value_is_sequence(value) ? value_count(value) : 0;
  n = MIN(n, MOST_FRAMES);
  u64 hash = n;
  if (n == 0)
    return NULL;
  for (u32 i = 0; i < n; i++) {
    const struct value *frame = value_item(value, i);
    frames[i] = (struct call_frame){.file = text_at(draft, frame, "filename"),
                                    .function = text_at(draft, frame, "name"),
                                    .line = number_at(frame, "line", 0)};
    hash = call_frame_hash(hash, &frames[i]);
  }
  u32 known = HASHED_INDEX(&draft->stacks, hash, one, is_stack(*one, frames, n));
  if (known != INDEX_NONE)
    return draft->stacks.at[known];
  struct flight_stack *stack = arena_alloc(draft->arena, sizeof(*stack));
  HASHED_ADD(&draft->stacks, hash, stack);
  *stack = (struct flight_stack){.frames = arena_elements(draft->arena, frames, n, sizeof(*frames)),
                                 .n = n};
  return stack;
}

/* "nccl:send 1->2" is a send to rank 2 of the group, "nccl:recv 2<-1" the matching receive on
 * rank 2; anything else is the library's name and the name of an operation. */
static void read_op(struct draft *draft, const char *name, struct flight_call *call) {
  const char *colon = strchr(name, ':');
  const char *op = colon ? colon + 1 : name;
  size_t length = strcspn(op, " ");
  bool send = length == 4 && text_starts_with(op, "send"),
       recv = length == 4 && text_starts_with(op, "recv");
  call->op = draft_keep_text(draft, op, length);
  call->like = op_named(call->op);
  call->peer = INDEX_NONE;
  call->message = send || recv;
  call->sends = send;
  const char *arrow = strpbrk(op + length, send ? ">" : "-");
  if (call->message && arrow && arrow[1] >= '0' && arrow[1] <= '9')
    call->peer = (u32)leading_number(arrow + 1, INDEX_NONE, NULL); /* in the group, for now */
  size_t n = strlen(call->op);
  call->closes = text_ends_with(call->op, "coalesced") &&
                 (n == 9 || call->op[n - 10] == '_' || call->op[n - 10] == ' ');
}

/* Operations whose own name ends like this, although each is a call of its own. */
static bool is_single_call(const char *op) {
  return !strcmp(op, "allreduce_coalesced") || !strcmp(op, "all_gather_into_tensor_coalesced") ||
         !strcmp(op, "reduce_scatter_tensor_coalesced");
}

/* By the wall clock, in ns. Times before 1970 are invalid. Without them the difference of two
 * times cannot overflow. */
static i64 creation_time(const struct value *entry) {
  i64 time = number_at(entry, "time_created_ns", NS_UNKNOWN);
  return time < 0 ? NS_UNKNOWN : time;
}

static void read_entry(struct draft *draft, const struct value *entry, u32 rank, u32 place,
                       dump_groups *groups) {
  const struct value *names = value_get(entry, "process_group");
  const char *group_name = value_text(value_item(names, 0));
  const char *name = value_text(value_get(entry, "profiling_name"));
  if (!name)
    return;
  struct flight_call call = {.rank = rank, .root = INDEX_NONE, .created = creation_time(entry)};
  u32 group = dump_group_find(draft, groups, group_name ? group_name : "0",
                              value_text(value_item(names, 1)));
  read_op(draft, name, &call);
  i64 number = number_at(entry, "pg_id", -1);
  if (number >= 0)
    groups->at[group].number = number;
  call.group = groups->at[group].group;
  if (value_is_true(value_get(entry, "is_p2p")))
    call.message = true;
  call.seq = number_at(entry, call.message ? "p2p_seq_id" : "collective_seq_id", SEQ_UNKNOWN);
  if (call.seq == SEQ_UNKNOWN) /* before 2.1 there was one count for both */
    call.seq = number_at(entry, "seq_id", SEQ_UNKNOWN);
  call.order = (u64)number_at(entry, "record_id", place);
  call.state = read_state(entry, name);
  if (is_single_call(call.op))
    call.closes = false;
  call.in = read_sizes(draft, value_get(entry, "input_sizes"), &call.in_count);
  call.out = read_sizes(draft, value_get(entry, "output_sizes"), &call.out_count);
  call.in_type = read_types(draft, value_get(entry, "input_dtypes"));
  call.out_type = read_types(draft, value_get(entry, "output_dtypes"));
  call.stack = read_stack(draft, value_get(entry, "frames"));
  const char *thread = value_text(value_get(entry, "thread_id"));
  call.thread = thread ? leading_number(thread, INT64_MAX, NULL) : FLIGHT_NO_THREAD;
  VECTOR_PUSH(&draft->calls, call);
}

ORDER_BY(by_order, struct flight_call, UP(order))

/* Calls before a closing entry with the same group and number are inside it and have its state:
 * the recorder does not follow them one by one. */
static void mark_coalesced(struct flight_call *calls, u32 n, u32 n_groups) {
  SCOPED u32 *closing = memory_array(size_sum(n_groups, 1), sizeof(*closing));
  FILL(closing, n_groups, INDEX_NONE);
  for (u32 i = n; i-- > 0;) {
    u32 *open = &closing[calls[i].group];
    const struct flight_call *close = *open == INDEX_NONE ? NULL : &calls[*open];
    if (calls[i].closes) {
      *open = i;
    } else if (close && close->seq == calls[i].seq && close->message == calls[i].message) {
      calls[i].coalesced = true;
      calls[i].state = close->state;
    } else {
      *open = INDEX_NONE;
    }
  }
}

void dump_entries_read(struct draft *draft, const struct value *root, u32 rank,
                       dump_groups *groups) {
  const struct value *entries = value_get(root, "entries");
  u32 first = draft->calls.n;
  for (u32 i = 0; i < value_count(entries); i++)
    read_entry(draft, value_item(entries, i), rank, i, groups);
  u32 n = draft->calls.n - first;
  if (n == 0)
    return;
  struct flight_call *calls = draft->calls.at + first;
  SORT(calls, n, by_order);
  mark_coalesced(calls, n, draft->groups.n);
}
