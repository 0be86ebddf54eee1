/* SPDX-License-Identifier: MIT */
#include "import/scalars/event_file.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/varint.h"
#include "import/file_budget.h"

#define HEADER_BYTES 12u /* u64 length, u32 checksum of it */
#define FOOTER_BYTES 4u  /* u32 checksum of the record */
#define LONGEST_TAG 128u

/* Protocol buffers: https://protobuf.dev/programming-guides/encoding/. */

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

struct proto_message {
  const u8 *at, *end;
  bool bad; /* it ends within a field, or has one of an unknown form */
};

struct field {
  u64 number, wire;
  u64 value;               /* but for WIRE_BYTES */
  struct proto_message in; /* of WIRE_BYTES */
};

static u64 little_endian(const u8 *at, u32 bytes) {
  u64 value = 0;
  for (u32 i = 0; i < bytes; i++)
    value |= (u64)at[i] << 8 * i;
  return value;
}

static u64 read_fixed(struct proto_message *message, u32 bytes) {
  message->bad |= (size_t)(message->end - message->at) < bytes;
  u64 value = message->bad ? 0 : little_endian(message->at, bytes);
  message->at += message->bad ? 0 : bytes;
  return value;
}

static bool next_field(struct proto_message *message, struct field *field) {
  if (message->bad || message->at >= message->end)
    return false;
  u64 key = varint_read(&message->at, message->end, &message->bad);
  *field = (struct field){.number = key >> 3, .wire = key & 7};
  if (field->wire == WIRE_64 || field->wire == WIRE_32)
    field->value = read_fixed(message, field->wire == WIRE_64 ? 8 : 4);
  else if (field->wire == WIRE_VARINT || field->wire == WIRE_BYTES)
    field->value = varint_read(&message->at, message->end, &message->bad);
  else
    message->bad = true;
  if (field->wire == WIRE_BYTES && !message->bad) {
    message->bad = field->value > (u64)(message->end - message->at);
    field->in = (struct proto_message){message->at, message->at, false};
    field->in.end += message->bad ? 0 : field->value;
    message->at = field->in.end;
  }
  return !message->bad;
}

static double float_of(u64 bits) {
  u32 low = (u32)bits;
  float value;
  memcpy(&value, &low, sizeof(value));
  return (double)value;
}

static double double_of(u64 bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

enum event_field { EVENT_STEP = 2, EVENT_SUMMARY = 5 };
enum summary_field { SUMMARY_VALUE = 1 };
enum value_field { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8 };
enum tensor_field { TENSOR_TYPE = 1, TENSOR_CONTENT = 4, TENSOR_FLOAT = 5, TENSOR_DOUBLE = 6 };
enum tensor_type { TYPE_FLOAT = 1, TYPE_DOUBLE = 2 };

/* The number of a tensor that has one; false if it has more, or of another type. TensorFlow 2 and
 * PyTorch's new style write scalars so. */
static bool read_tensor(struct proto_message *tensor, double *number) {
  struct field field;
  struct proto_message numbers = {0};
  u64 type = 0, bytes;
  while (next_field(tensor, &field)) {
    if (field.number == TENSOR_TYPE && field.wire == WIRE_VARINT)
      type = field.value;
    else if (field.wire == WIRE_BYTES &&
             (field.number == TENSOR_CONTENT || field.number == TENSOR_FLOAT ||
              field.number == TENSOR_DOUBLE))
      numbers = field.in;
  }
  bytes = type == TYPE_FLOAT ? 4 : 8;
  if (tensor->bad || (type != TYPE_FLOAT && type != TYPE_DOUBLE) ||
      (u64)(numbers.end - numbers.at) != bytes)
    return false;
  u64 bits = little_endian(numbers.at, (u32)bytes);
  *number = type == TYPE_FLOAT ? float_of(bits) : double_of(bits);
  return true;
}

static int read_value(struct scalar_log *log, struct proto_message *value, u64 step) {
  struct field field;
  char tag[LONGEST_TAG] = "";
  double number = NAN;
  bool has_number = false;
  while (next_field(value, &field)) {
    u64 length = field.wire == WIRE_BYTES ? (u64)(field.in.end - field.in.at) : 0;
    if (field.number == VALUE_TAG && length && length < sizeof(tag)) {
      memcpy(tag, field.in.at, length);
      tag[length] = 0;
    } else if (field.number == VALUE_SIMPLE && field.wire == WIRE_32) {
      number = float_of(field.value);
      has_number = true;
    } else if (field.number == VALUE_TENSOR && field.wire == WIRE_BYTES)
      has_number |= read_tensor(&field.in, &number);
  }
  if (value->bad)
    return -EBADMSG;
  if (has_number)
    scalar_log_add(log, tag, number, step);
  return 0;
}

/* In a first look for the step: fields may be in any order. */
int event_file_read_event(struct scalar_log *log, const u8 *bytes, size_t n) {
  struct proto_message event = {bytes, bytes + n, false}, first = event;
  struct field field, in;
  u64 step = 0; /* a field that is 0 is not written */
  int error = 0;
  while (next_field(&first, &field))
    if (field.number == EVENT_STEP && field.wire == WIRE_VARINT)
      step = field.value;
  while (!error && next_field(&event, &field)) {
    bool summary = field.number == EVENT_SUMMARY && field.wire == WIRE_BYTES;
    while (summary && !error && next_field(&field.in, &in))
      if (in.number == SUMMARY_VALUE && in.wire == WIRE_BYTES)
        error = read_value(log, &in.in, step);
    error = error ? error : summary && field.in.bad ? -EBADMSG : 0;
  }
  return error ? error : event.bad ? -EBADMSG : 0;
}

/* CRC-32C (Castagnoli), a bit at a time from its reflected polynomial, kept by byte. */
static void fill_table(u32 table[256]) {
  for (u32 byte = 0; byte < 256; byte++) {
    u32 sum = byte;
    for (int bit = 0; bit < 8; bit++)
      sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
    table[byte] = sum;
  }
}

/* As TFRecord stores it, so that a checksum of checksums differs from them. */
static u32 masked_sum(const u32 table[256], const u8 *bytes, u64 n) {
  u32 sum = UINT32_MAX;
  FOR_EACH(bytes, n, byte)
    sum = table[(sum ^ *byte) & 0xff] ^ sum >> 8;
  sum = ~sum;
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

bool event_file_recognise(const u8 *head, size_t n) {
  return n > HEADER_BYTES &&
         memmem(head + HEADER_BYTES, n < 64 ? n - HEADER_BYTES : 52, "brain.Event:", 12) != NULL;
}

static void say_damage(struct scalar_log *log, u64 at, const char *what) {
  if (!*log->damage)
    snprintf(log->damage, sizeof(log->damage), "is damaged at byte %llu: %s",
             (unsigned long long)at, what);
}

int event_file_read(struct scalar_log *log, const u8 *bytes, size_t n, char *why,
                    size_t why_bytes) {
  u32 table[256];
  u64 at = 0, records = 0;
  fill_table(table);
  while (at < n && !budget_is_over()) {
    u64 left = n - at, length = left < HEADER_BYTES ? 0 : little_endian(bytes + at, 8);
    const u8 *record = bytes + at + HEADER_BYTES;
    if (left >= HEADER_BYTES &&
        masked_sum(table, bytes + at, 8) != little_endian(bytes + at + 8, 4)) {
      say_damage(log, at, "the checksum of a record's length is wrong; what follows is not read");
      break;
    }
    if (left < HEADER_BYTES + FOOTER_BYTES || length > left - HEADER_BYTES - FOOTER_BYTES) {
      say_damage(log, at, "the file ends in the middle of a record");
      break;
    }
    bool right = masked_sum(table, record, length) == little_endian(record + length, FOOTER_BYTES);
    int error = right ? event_file_read_event(log, record, length) : -EBADMSG;
    if (error == -EBADMSG)
      say_damage(log, at,
                 right ? "a record is not an event; the others are read"
                       : "the checksum of a record is wrong; the others are read");
    else if (error)
      return error;
    records += !error;
    at += HEADER_BYTES + length + FOOTER_BYTES;
  }
  if (records || !*log->damage)
    return 0;
  snprintf(why, why_bytes, "%s", log->damage);
  return -EINVAL;
}
