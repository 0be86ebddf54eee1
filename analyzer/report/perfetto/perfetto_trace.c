/* SPDX-License-Identifier: MIT */
#include "report/perfetto/perfetto_trace.h"

#include <errno.h>
#include <math.h>
#include <zlib.h>

#include "base/checked_memory.h"
#include "base/utf8.h"

enum { BUFFER_BYTES = 1 << 20, COMPRESSED_BYTES = 1 << 18 };

struct zlib_writer {
  z_stream stream;
  u8 bytes[COMPRESSED_BYTES];
};

static int open_gzip(struct perfetto_trace *trace) {
  trace->gzip = memory_zeroed(1, sizeof(*trace->gzip));
  /* The fastest level: traces are read soon, and seldom kept. 16 selects a gzip header. */
  if (deflateInit2(&trace->gzip->stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    free(trace->gzip);
    trace->gzip = NULL;
    return -EIO;
  }
  return 0;
}

/* The root of all tracks says that processes come in the order of their ranks: UIs before summer
 * 2026 put those with most slices first. */
static void write_track_order(struct perfetto_trace *trace) {
  struct protobuf *p = &trace->buffer;
  size_t packet = protobuf_open(p, TRACE_PACKET);
  protobuf_uint(p, PACKET_SEQUENCE, trace->next_sequence++);
  size_t root = protobuf_open(p, PACKET_TRACK);
  protobuf_uint(p, TRACK_UUID, 0);
  protobuf_uint(p, TRACK_CHILD_ORDERING, CHILD_ORDERING_EXPLICIT);
  protobuf_uint(p, TRACK_PROCESS_ORDERING, PROCESS_ORDERING_EXPLICIT);
  protobuf_close(p, root);
  protobuf_close(p, packet);
}

int perfetto_trace_begin(struct perfetto_trace *trace, FILE *out, bool gzip, i64 origin) {
  *trace =
      (struct perfetto_trace){.out = out, .origin = origin, .next_uuid = 1, .next_sequence = 1};
  int error = gzip ? open_gzip(trace) : 0;
  if (error)
    return error;
  protobuf_reserve(&trace->buffer, BUFFER_BYTES);
  write_track_order(trace);
  return 0;
}

static void write_bytes(struct perfetto_trace *trace, const void *bytes, size_t n) {
  if (!trace->error && fwrite(bytes, 1, n, trace->out) != n)
    trace->error = errno ? -errno : -EIO;
}

static void put_compressed(struct perfetto_trace *trace, u8 *bytes, size_t n, bool last) {
  z_stream *stream = &trace->gzip->stream;
  stream->next_in = bytes;
  stream->avail_in = (uInt)n;
  do {
    stream->next_out = trace->gzip->bytes;
    stream->avail_out = COMPRESSED_BYTES;
    deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
    write_bytes(trace, trace->gzip->bytes, COMPRESSED_BYTES - stream->avail_out);
  } while (stream->avail_out == 0);
}

/* Gives full buffers to the file. */
static void flush(struct perfetto_trace *trace, bool all) {
  struct protobuf *buffer = &trace->buffer;
  if (!all && buffer->n < BUFFER_BYTES / 2)
    return;
  if (trace->gzip)
    put_compressed(trace, buffer->bytes, buffer->n, all);
  else
    write_bytes(trace, buffer->bytes, buffer->n);
  trace->written += buffer->n;
  buffer->n = 0;
}

int perfetto_trace_end(struct perfetto_trace *trace) {
  if (trace->buffer.bytes)
    flush(trace, true);
  if (trace->gzip)
    deflateEnd(&trace->gzip->stream);
  FREE_EACH(trace, gzip, buffer.bytes, pids.at);
  return trace->error;
}

/* Cuts between characters, and says that it was cut. */
char *perfetto_text(const char *text, size_t most) {
  static const char cut[] = "…";
  char *copy = utf8_valid_copy(text);
  size_t n = strlen(copy);
  if (n <= most)
    return copy;
  memcpy(copy + utf8_whole(copy, most - sizeof(cut)), cut, sizeof(cut));
  return copy;
}

static void put_text(struct protobuf *p, u32 field, const char *text, size_t most) {
  SCOPED char *valid = perfetto_text(text, most);
  protobuf_bytes(p, field, valid, strlen(valid));
}

u64 perfetto_track(struct perfetto_trace *trace, u32 sequence, const struct perfetto_track *track) {
  struct protobuf *p = &trace->buffer;
  u64 uuid = trace->next_uuid++;
  size_t packet = protobuf_open(p, TRACE_PACKET);
  protobuf_uint(p, PACKET_SEQUENCE, sequence);
  size_t descriptor = protobuf_open(p, PACKET_TRACK);
  protobuf_uint(p, TRACK_UUID, uuid);
  put_text(p, TRACK_NAME, track->name, PERFETTO_NAME_BYTES);
  if (track->parent)
    protobuf_uint(p, TRACK_PARENT, track->parent);
  protobuf_int(p, TRACK_SIBLING_RANK, track->order);
  protobuf_uint(p, TRACK_CHILD_ORDERING, CHILD_ORDERING_EXPLICIT);
  if (track->description)
    put_text(p, TRACK_DESCRIPTION, track->description, PERFETTO_TEXT_BYTES);
  if (track->pid) {
    size_t process = protobuf_open(p, TRACK_PROCESS);
    protobuf_uint(p, PROCESS_PID, track->pid);
    protobuf_int(p, PROCESS_SORT_INDEX, track->order);
    put_text(p, PROCESS_NAME, track->name, PERFETTO_NAME_BYTES);
    protobuf_close(p, process);
  }
  if (track->unit) {
    size_t counter = protobuf_open(p, TRACK_COUNTER);
    if (track->bytes)
      protobuf_uint(p, COUNTER_UNIT, UNIT_SIZE_BYTES);
    else
      put_text(p, COUNTER_UNIT_NAME, track->unit, PERFETTO_NAME_BYTES);
    protobuf_close(p, counter);
  }
  protobuf_close(p, descriptor);
  protobuf_close(p, packet);
  return uuid;
}

u32 perfetto_sequence(struct perfetto_trace *trace) {
  static const char *const names[] = {
#define A(ID, name) [ANNOTATES_##ID] = name,
      PERFETTO_ANNOTATIONS(A)
#undef A
  };
  struct protobuf *p = &trace->buffer;
  u32 sequence = trace->next_sequence++;
  size_t packet = protobuf_open(p, TRACE_PACKET);
  protobuf_uint(p, PACKET_SEQUENCE, sequence);
  protobuf_uint(p, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED | SEQUENCE_NEEDS_STATE);
  size_t interned = protobuf_open(p, PACKET_INTERNED);
  for (u32 i = 1; i < LENGTH_OF(names); i++) {
    size_t entry = protobuf_open(p, INTERNED_ANNOTATION);
    protobuf_uint(p, INTERN_IID, i);
    protobuf_bytes(p, INTERN_TEXT, names[i], strlen(names[i]));
    protobuf_close(p, entry);
  }
  protobuf_close(p, interned);
  protobuf_close(p, packet);
  return sequence;
}

struct perfetto_event perfetto_event_begin(struct perfetto_trace *trace, u32 sequence, i64 time,
                                           u32 type, u64 track) {
  struct protobuf *p = &trace->buffer;
  struct perfetto_event event = {.packet = protobuf_open(p, TRACE_PACKET)};
  protobuf_uint(p, PACKET_TIMESTAMP, time > trace->origin ? (u64)time - (u64)trace->origin : 0);
  protobuf_uint(p, PACKET_SEQUENCE, sequence);
  protobuf_uint(p, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
  event.event = protobuf_open(p, PACKET_TRACK_EVENT);
  protobuf_uint(p, EVENT_TYPE, type);
  protobuf_uint(p, EVENT_TRACK, track);
  return event;
}

void perfetto_event_end(struct perfetto_trace *trace, struct perfetto_event event) {
  protobuf_close(&trace->buffer, event.event);
  protobuf_close(&trace->buffer, event.packet);
  flush(trace, false);
}

void perfetto_end_slice(struct perfetto_trace *trace, u32 sequence, i64 time, u64 track) {
  perfetto_event_end(trace, perfetto_event_begin(trace, sequence, time, TYPE_END, track));
}

void perfetto_annotate_int(struct perfetto_trace *trace, enum perfetto_annotation what, i64 value) {
  size_t note = protobuf_open(&trace->buffer, EVENT_ANNOTATION);
  protobuf_uint(&trace->buffer, ANNOTATION_NAME_IID, what);
  protobuf_int(&trace->buffer, ANNOTATION_INT, value);
  protobuf_close(&trace->buffer, note);
}

void perfetto_annotate_double(struct perfetto_trace *trace, enum perfetto_annotation what,
                              double value) {
  if (isnan(value))
    return;
  size_t note = protobuf_open(&trace->buffer, EVENT_ANNOTATION);
  protobuf_uint(&trace->buffer, ANNOTATION_NAME_IID, what);
  protobuf_double(&trace->buffer, ANNOTATION_DOUBLE, value);
  protobuf_close(&trace->buffer, note);
}

void perfetto_annotate_text(struct perfetto_trace *trace, enum perfetto_annotation what,
                            const char *value) {
  if (!value)
    return;
  size_t note = protobuf_open(&trace->buffer, EVENT_ANNOTATION);
  protobuf_uint(&trace->buffer, ANNOTATION_NAME_IID, what);
  put_text(&trace->buffer, ANNOTATION_TEXT, value, PERFETTO_TEXT_BYTES);
  protobuf_close(&trace->buffer, note);
}
