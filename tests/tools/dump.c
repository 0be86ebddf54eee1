/* SPDX-License-Identifier: MIT
 *
 * dump FILE...: prints every record of a trace as text, for work on the shim.
 */
#include <inttypes.h>

#include "trace.h"

#define SHOW_u32(value) printf("%" PRIu32, value)
#define SHOW_u64(value) printf("%" PRIu64, value)
#define SHOW_u8(value) printf("%u", (unsigned)(value))
#define SHOW_u16(value) printf("%u", (unsigned)(value))
#define SHOW_i32(value) printf("%" PRId32, value)
#define SHOW_i64(value) printf("%" PRId64, value)

static void show(const struct trace_record *at, void *nothing) {
  (void)nothing;
  printf("%u.%u %" PRIu64 " ", at->chunk->thread, at->chunk->sequence, at->time);
  switch (at->record->type) {
#define FIELD(type, field, doc)                                                                    \
  printf(" " #field "=");                                                                          \
  SHOW_##type(r->field);
#define X(NAME, name, id, home, doc)                                                               \
  case id: {                                                                                       \
    const struct tscope_##name##_record *r = (const void *)at->record;                             \
    printf(#NAME " tag=%u", r->header.tag);                                                        \
    TSCOPE_FIELDS_##NAME(FIELD) break;                                                             \
  }
    TSCOPE_RECORDS(X)
  default:
    printf("type %u, %u words", at->record->type, at->record->words);
  }
#undef X
#undef FIELD
  if (at->record->type == TSCOPE_REC_STRING) {
    const struct tscope_string_record *string = (const void *)at->record;
    printf(" \"%.*s\"", (int)string->bytes, (const char *)(string + 1));
  } else if (at->record->type == TSCOPE_REC_SCHEMA) {
    const struct tscope_schema_record *schema = (const void *)at->record;
    printf(" \"%.*s\"", (int)schema->bytes, (const char *)(schema + 1));
  }
  putchar('\n');
}

int main(int argc, char **argv) {
  int status = argc < 2;
  for (int i = 1; i < argc; i++) {
    struct trace trace;
    if (!trace_open(&trace, argv[i])) {
      status = 1;
      continue;
    }
    printf("# %s: host %s pid %u run %s rank %" PRId32 ", %u chunks, %s\n", argv[i],
           trace.header->host, trace.header->pid, trace.header->run, (i32)trace.header->rank,
           trace.chunks, trace.header->closed_realtime_ns ? "closed" : "not closed");
    for (int reason = 0; reason < TSCOPE_LOSS_REASONS; reason++)
      if (trace.header->lost[reason])
        printf("# lost[%d] %" PRIu64 "\n", reason, trace.header->lost[reason]);
    status |= trace_walk(&trace, show, NULL) < 0;
    trace_close(&trace);
  }
  return status;
}
