/* SPDX-License-Identifier: MIT
 *
 * Reduces events to what is kept of them.
 */
#include <jansson.h>

#include "base/hash.h"
#include "base/rank_list.h"
#include "base/texts.h"
#include "import/kineto/kineto_trace.h"

#define MOST_FACT_BYTES (4u << 20)
#define MOST_UNLISTED 4096u /* members that a group may claim without listing them */
#define MOST_GROUPS 4096u   /* further groups count as unnamed */
#define MOST_LANES 4096u    /* what comes on further ones counts as on the last */

static u8 dtype_of(struct json_text text) {
  static const struct {
    const char *word;
    u8 dtype;
  } words[] = {{"Float", TSCOPE_DTYPE_F32},
               {"Half", TSCOPE_DTYPE_F16},
               {"BFloat16", TSCOPE_DTYPE_BF16},
               {"Double", TSCOPE_DTYPE_F64},
               {"Long", TSCOPE_DTYPE_I64},
               {"Int", TSCOPE_DTYPE_I32},
               {"Short", TSCOPE_DTYPE_I16},
               {"Char", TSCOPE_DTYPE_I8},
               {"Byte", TSCOPE_DTYPE_U8},
               {"Bool", TSCOPE_DTYPE_BOOL},
               {"Float8_e4m3fn", TSCOPE_DTYPE_F8E4M3},
               {"Float8_e5m2", TSCOPE_DTYPE_F8E5M2},
               {"float", TSCOPE_DTYPE_F32},
               {"c10::Half", TSCOPE_DTYPE_F16},
               {"c10::BFloat16", TSCOPE_DTYPE_BF16},
               {"double", TSCOPE_DTYPE_F64},
               {"long int", TSCOPE_DTYPE_I64},
               {"long", TSCOPE_DTYPE_I64},
               {"int", TSCOPE_DTYPE_I32},
               {"unsigned char", TSCOPE_DTYPE_U8},
               {"signed char", TSCOPE_DTYPE_I8},
               {"bool", TSCOPE_DTYPE_BOOL}};
  FOR_EACH(words, LENGTH_OF(words), one)
    if (text_is(text, one->word, (u32)strlen(one->word)))
      return one->dtype;
  return TSCOPE_DTYPE_UNKNOWN;
}

static char *copy_text(struct kineto_trace *trace, struct json_text text) {
  char *copy = arena_alloc(&trace->arena, size_sum(text.n, 1));
  scan_unescape(text, copy);
  return copy;
}

/* Number of an event's process group; INDEX_NONE if it names none. */
static u32 group_of(struct kineto_trace *trace, const struct kineto_event *event) {
  char name[256];
  if (event->group.n == 0 || event->group.n >= sizeof(name))
    return INDEX_NONE;
  scan_unescape(event->group, name);
  u32 number = kineto_name_of(&trace->names, event->group);
  for (u32 i = trace->groups.n; i-- > 0;)
    if (trace->groups.at[i].number == number &&
        (event->group_ranks.n == 0 || !*trace->groups.at[i].ranks ||
         text_is(event->group_ranks, trace->groups.at[i].ranks,
                 (u32)strlen(trace->groups.at[i].ranks))))
      return i;
  if (trace->groups.n == MOST_GROUPS)
    return INDEX_NONE;
  struct kineto_group group = {.number = number,
                               .name = arena_text(&trace->arena, name),
                               .what = copy_text(trace, event->group_what),
                               .ranks = copy_text(trace, event->group_ranks)};
  if (strcmp(group.what, "undefined") == 0) /* PyTorch's word for a group without a description */
    group.what = "";
  u32 believable = MAX(trace->world_size, MOST_UNLISTED);
  if (event->group_size > 0 && event->group_size <= believable)
    group.size = (u32)event->group_size;
  group.n_members = ranks_listed(&trace->arena, group.ranks, KINETO_MOST_RANKS, &group.members);
  group.size = group.n_members ? group.n_members : group.size;
  VECTOR_PUSH(&trace->groups, group);
  return trace->groups.n - 1;
}

/* Elements of the first shape of "[[6144], [], 8]": the arguments of a collective in an older
 * PyTorch; -1 if there is none. */
static i64 first_shape_elements(struct json_text shapes) {
  const char *p = shapes.at, *end = shapes.at + shapes.n;
  while (p < end && *p == '[')
    p++;
  if (p == end || *p == ']')
    return -1;
  i64 elements = 1;
  while (p < end && *p != ']') {
    i64 extent = 0;
    while (p < end && *p >= '0' && *p <= '9' && extent < INT32_MAX)
      extent = extent * 10 + (*p++ - '0');
    if (__builtin_mul_overflow(elements, extent, &elements))
      return -1;
    while (p < end && (*p == ',' || *p == ' '))
      p++;
    if (p < end && *p != ']' && (*p < '0' || *p > '9'))
      return -1;
  }
  return elements;
}

static struct json_text first_type(struct json_text types) {
  const char *quote = types.n ? memchr(types.at, '"', types.n) : NULL;
  struct json_text type = {.at = "", .n = 0};
  if (quote && !scan_string(quote + 1, types.at + types.n, &type))
    type.n = 0;
  return type;
}

static i64 count_or_unknown(i64 value) {
  return value >= 0 ? value : -1;
}

/* Facts of a collective; INDEX_NONE if the event has none. */
static u32 add_comm_facts(struct kineto_trace *trace, const struct kineto_event *event,
                          const struct kineto_name *name) {
  bool old = name->comm_range && event->shapes.n;
  if (event->collective.n == 0 && !old)
    return INDEX_NONE;
  char words[64] = "";
  if (event->collective.n && event->collective.n < sizeof(words))
    scan_unescape(event->collective, words);
  struct kineto_comm_facts facts = {
      .op = event->collective.n ? op_named(words) : name->op,
      .dtype = dtype_of(old ? first_type(event->types) : event->dtype),
      .in_count = old ? first_shape_elements(event->shapes) : count_or_unknown(event->in_count),
      .out_count = count_or_unknown(event->out_count),
      .size = count_or_unknown(event->group_size),
      .seq = count_or_unknown(event->seq),
      .rank = count_or_unknown(event->rank),
      .source = count_or_unknown(event->source),
      .target = count_or_unknown(event->target)};
  if (facts.op == 0) /* "wait", "init", "startcoalesced": nothing that communicates */
    return INDEX_NONE;
  facts.group = group_of(trace, event);
  VECTOR_PUSH(&trace->comms, facts);
  return trace->comms.n - 1;
}

static i64 text_number(struct json_text text) {
  while (text.n && (*text.at < '0' || *text.at > '9')) {
    text.at++;
    text.n--;
  }
  while (text.n && (text.at[text.n - 1] < '0' || text.at[text.n - 1] > '9'))
    text.n--;
  return scan_integer(text, -1);
}

/* Device work belongs to a device and stream, host work to a process and thread. */
static u16 find_lane(struct kineto_trace *trace, const struct kineto_event *event, bool device) {
  i64 stream = device && event->stream != NS_UNKNOWN ? event->stream : text_number(event->tid);
  i64 gpu = device && event->device != NS_UNKNOWN ? event->device : text_number(event->pid);
  const i64 key[] = {stream, gpu, device};
  u64 hash = table_hash(0, key, sizeof(key));
  u32 known = HASHED_INDEX(&trace->lanes, hash, one,
                           one->device == device && one->stream == stream && one->gpu == gpu);
  if (known != INDEX_NONE || trace->lanes.n == MOST_LANES)
    return (u16)(known != INDEX_NONE ? known : MOST_LANES - 1);
  const char *name =
      arena_printf(&trace->arena, device ? "stream %lld" : "thread %lld", (long long)stream);
  return (u16)HASHED_ADD(&trace->lanes, hash, (struct kineto_lane){device, stream, gpu, name});
}

static bool is_device(enum kineto_category category) {
  return category == KINETO_KERNEL || category == KINETO_MEMCPY || category == KINETO_MEMSET;
}

static void add_sync(struct kineto_trace *trace, const struct kineto_event *event,
                     struct kineto_item *item) {
  struct kineto_sync sync = {.wait_stream =
                                 event->wait_stream == NS_UNKNOWN ? -1 : event->wait_stream,
                             .wait_record = event->wait_record > 0 ? (u32)event->wait_record : 0};
  if (event->wait_stream == NS_UNKNOWN && event->stream != NS_UNKNOWN)
    sync.wait_stream = event->stream;
  item->kind = KINETO_ITEM_SYNC;
  item->what = trace->syncs.n;
  VECTOR_PUSH(&trace->syncs, sync);
}

static void add_op(struct kineto_trace *trace, const struct kineto_event *event,
                   const struct kineto_name *name, struct kineto_item *item) {
  item->kind = name->param_comms                      ? KINETO_ITEM_COMMS
               : event->category == KINETO_ANNOTATION ? KINETO_ITEM_RANGE
                                                      : KINETO_ITEM_OP;
  if (name->param_comms || name->comm_range) {
    if (name->comm_range)
      item->kind = KINETO_ITEM_RANGE;
    item->what = add_comm_facts(trace, event, name);
    return;
  }
  if (!name->fill || event->shapes.n == 0)
    return;
  /* what it fills is part of its name, so that fills of different sizes differ */
  char shaped[256];
  int n = snprintf(shaped, sizeof(shaped), "%s %.*s", name->text, (int)event->shapes.n,
                   event->shapes.at);
  if (n < 0 || (size_t)n >= sizeof(shaped))
    return;
  item->name = kineto_number_of(&trace->names, shaped);
}

/* Functions of the user's program or of a Python library; not built-in functions, and not modules.
 */
static bool is_in_a_file(struct json_text name) {
  return name.n > 4 && *name.at != '<' && memmem(name.at, name.n, "): ", 3);
}

static void set_sequence(const struct kineto_event *event, struct kineto_item *item) {
  if (event->sequence == NS_UNKNOWN || event->sequence < 0 || event->sequence >= INDEX_NONE)
    return;
  i64 thread = event->forward_thread == NS_UNKNOWN ? 0 : event->forward_thread;
  item->what = (u32)event->sequence;
  item->thread = thread < 0 || thread > UINT8_MAX ? UINT8_MAX : (u8)thread;
}

static u8 kernel_kind(u8 library) {
  return library == COMM_LIBRARY_NONE   ? KINETO_ITEM_KERNEL
         : library == COMM_LIBRARY_NCCL ? KINETO_ITEM_COLLECTIVE
                                        : KINETO_ITEM_COMM_KERNEL;
}

void kineto_add_event(struct kineto_trace *trace, const struct kineto_event *event) {
  if (event->category == KINETO_OTHER || event->start == NS_UNKNOWN || event->name.n == 0 ||
      (event->category == KINETO_PYTHON && !is_in_a_file(event->name)))
    return;
  u32 number = kineto_name_of(&trace->names, event->name);
  const struct kineto_name *name = &trace->names.list.at[number];
  struct kineto_item item = {.start = event->start,
                             .end = event->start,
                             .name = number,
                             .what = INDEX_NONE,
                             .correlation = event->correlation > 0 ? (u32)event->correlation : 0};
  if (event->length > 0 && __builtin_add_overflow(event->start, event->length, &item.end))
    return;
  bool device = is_device(event->category) || name->comm_worker;
  switch (event->category) {
  case KINETO_KERNEL:
    if (name->copies) {
      item.kind = KINETO_ITEM_MEMCPY;
      item.bytes = event->size > 0 ? (float)event->size : 0;
      break;
    }
    item.kind = kernel_kind(kineto_communication(&trace->names, number).library);
    if (item.kind == KINETO_ITEM_COLLECTIVE)
      item.what = add_comm_facts(trace, event, name);
    break;
  case KINETO_MEMCPY:
  case KINETO_MEMSET:
    item.kind = event->category == KINETO_MEMCPY ? KINETO_ITEM_MEMCPY : KINETO_ITEM_MEMSET;
    item.bytes = event->bytes > 0 ? (float)event->bytes : 0;
    if (name->copy == TSCOPE_MEMCPY_P2P && event->category == KINETO_MEMCPY &&
        kineto_communication(&trace->names, number).library)
      item.kind = KINETO_ITEM_COMM_KERNEL;
    break;
  case KINETO_CALL:
    item.kind = KINETO_ITEM_CALL;
    break;
  case KINETO_SYNC:
    add_sync(trace, event, &item);
    break;
  case KINETO_PYTHON:
    item.kind = KINETO_ITEM_PYTHON;
    break;
  default:
    add_op(trace, event, name, &item);
    if (item.kind == KINETO_ITEM_OP)
      set_sequence(event, &item);
  }
  item.lane = find_lane(trace, event, device);
  VECTOR_PUSH(&trace->items, item);
}

static const char *text_member(struct kineto_trace *trace, const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return arena_text(&trace->arena, text);
}

static void read_distributed(struct kineto_trace *trace, const json_t *info) {
  const json_t *rank = json_object_get(info, "rank"), *world = json_object_get(info, "world_size");
  const char *text = json_string_value(rank), *end = text;
  json_int_t value =
      text ? (json_int_t)leading_number(text, KINETO_MOST_RANKS, &end) : json_integer_value(rank);
  bool said = text ? end > text : json_is_integer(rank);
  if (said && value >= 0 && value < KINETO_MOST_RANKS)
    trace->rank = (u32)value;
  value = json_integer_value(world);
  if (value > 0 && value <= KINETO_MOST_RANKS)
    trace->world_size = (u32)value;
  trace->backend = text_member(trace, info, "backend");
  trace->nccl = text_member(trace, info, "nccl_version");
}

void kineto_add_fact(struct kineto_trace *trace, struct json_text key, const char *value,
                     size_t bytes, i64 *base_ns) {
  bool distributed = TEXT_IS(key, "distributedInfo"), devices = TEXT_IS(key, "deviceProperties");
  if (TEXT_IS(key, "baseTimeNanoseconds")) {
    struct json_text text;
    if (scan_scalar(value, value + bytes + 1, &text))
      *base_ns = scan_integer(text, 0);
    return;
  }
  if ((!distributed && !devices) || bytes > MOST_FACT_BYTES)
    return;
  json_t *document = json_loadb(value, bytes, JSON_DECODE_ANY, NULL);
  if (distributed && json_is_object(document))
    read_distributed(trace, document);
  const json_t *device = devices ? json_array_get(document, 0) : NULL;
  if (device) {
    json_int_t memory = json_integer_value(json_object_get(device, "totalGlobalMem"));
    trace->gpu_name = text_member(trace, device, "name");
    trace->gpu_memory = memory > 0 ? (u64)memory : 0;
  }
  json_decref(document);
}
