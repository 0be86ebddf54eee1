/* SPDX-License-Identifier: MIT */
#include "record/trace_definitions.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "record/fnv.h"
#include "record/lock.h"
#include "record/reserve.h"
#include "record/tick_clock.h"

/* A string is identified by the hash and length of its text. With this many strings, two texts
 * share both once in 10^10 runs. */
struct string {
  u64 hash;
  u32 bytes;
  u32 number; /* 0: free; stored last */
};
enum { STRINGS_BITS = 16, STRINGS_SLOTS = 1 << STRINGS_BITS, STRINGS_MAX = STRINGS_SLOTS / 4 * 3 };

static struct string *strings;
static u32 n_strings;
static struct tscope_thread definitions;
static struct tscope_lock lock = {.for_records = true};

int tscope_definitions_init(void) {
  strings = tscope_reserve_map(-1, STRINGS_SLOTS * sizeof(*strings));
  if (strings == MAP_FAILED)
    return -errno;
  tscope_writer_init(&definitions.retained, TSCOPE_RETAINED, TSCOPE_CLOCK_TICKS);
  tscope_writer_init(&definitions.ring, TSCOPE_RING, TSCOPE_CLOCK_TICKS);
  definitions.tick_shift = tscope_clock.shift;
  return 0;
}

static bool write_locked(u8 type, u16 tag, void *record, u32 bytes) {
  return tscope_retain(&definitions, tscope_ticks(), type, tag, record, bytes);
}

bool tscope_definitions_write(u8 type, u16 tag, void *record, u32 bytes) {
  if (!tscope_lock(&lock))
    return false;
  bool written = write_locked(type, tag, record, bytes);
  tscope_unlock(&lock);
  return written;
}

/* A record with text after its fields, as it is on disk. */
struct with_text {
  union {
    struct tscope_string_record string;
    struct tscope_schema_record schema;
  };
  char text[8 * TSCOPE_MAX_RECORD_WORDS - 16];
};
_Static_assert(sizeof(struct tscope_string_record) == 16, "text follows the fields");
_Static_assert(sizeof(struct tscope_schema_record) == 16, "text follows the fields");
_Static_assert(sizeof(struct with_text) == 8 * TSCOPE_MAX_RECORD_WORDS, "the largest record");

/* Copies text after the fields, cut to what fits into a record. Returns its length. */
static u32 set_text(struct with_text *record, const char *text, size_t bytes) {
  bytes = MIN(bytes, sizeof(record->text));
  memset(record->text, 0, (bytes + 7) / 8 * 8);
  memcpy(record->text, text, bytes);
  return (u32)bytes;
}

static u32 whole_bytes(u32 text_bytes) {
  return 16 + (text_bytes + 7) / 8 * 8;
}

/* With a final mix, because its upper bits are the table's index. */
static u64 string_hash(const char *text, size_t bytes) {
  u64 hash = tscope_fnv(TSCOPE_FNV_SEED ^ bytes, text, bytes);
  return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
}

/* The string's slot, or the free slot where it belongs. Needs no lock: slots are filled and never
 * emptied. */
static struct string *find_string(u64 hash, u32 bytes, u32 *number) {
  for (u64 i = hash >> (64 - STRINGS_BITS);; i++) {
    struct string *slot = &strings[i & (STRINGS_SLOTS - 1)];
    *number = __atomic_load_n(&slot->number, __ATOMIC_ACQUIRE);
    if (!*number || (slot->hash == hash && slot->bytes == bytes))
      return slot;
  }
}

static u32 add_locked(u64 hash, const char *text, size_t bytes) {
  u32 number;
  struct string *slot = find_string(hash, (u32)bytes, &number);
  if (number)
    return number;
  if (n_strings == STRINGS_MAX) {
    tscope_count_lost(TSCOPE_LOSS_STRINGS, 1);
    return 0;
  }
  static struct with_text record; /* the lock is held; the thread's stack may be small */
  number = n_strings + 1;
  u32 length = set_text(&record, text, bytes);
  record.string.string = number;
  record.string.bytes = length;
  if (!write_locked(TSCOPE_REC_STRING, 0, &record, whole_bytes(length)))
    return 0;
  n_strings = number;
  slot->hash = hash;
  slot->bytes = (u32)bytes;
  __atomic_store_n(&slot->number, number, __ATOMIC_RELEASE);
  return number;
}

u32 tscope_string_n(struct tscope_thread *thread, const char *text, size_t bytes) {
  (void)thread;
  if (!text)
    return 0;
  u64 hash = string_hash(text, bytes);
  u32 number;
  find_string(hash, (u32)bytes, &number);
  if (number)
    return number;
  if (!tscope_lock(&lock))
    return 0;
  number = add_locked(hash, text, bytes);
  tscope_unlock(&lock);
  return number;
}

u32 tscope_string(struct tscope_thread *thread, const char *text) {
  return tscope_string_n(thread, text, text ? strlen(text) : 0);
}

void tscope_info(struct tscope_thread *thread, enum tscope_info key, const char *value,
                 const char *detail) {
  if (!value)
    return;
  struct tscope_info_record info = {.value = tscope_string(thread, value),
                                    .detail = tscope_string(thread, detail)};
  tscope_definitions_write(TSCOPE_REC_INFO, (u16)key, &info, sizeof(info));
}

static bool is_known(const char *text) {
  u32 number, bytes = (u32)strlen(text);
  find_string(string_hash(text, bytes), bytes, &number);
  return number != 0;
}

/* A program may give each of very many threads a name of its own. They must not fill the table of
 * strings: after so many names, new ones are kept without their digits, and after as many again not
 * at all. */
static u32 thread_name(const char *name) {
  enum { NAMES = 4096 };
  static u32 n_new;
  char without_digits[17];
  u32 n = 0;
  if (is_known(name))
    return tscope_string(NULL, name);
  if (__atomic_load_n(&n_new, __ATOMIC_RELAXED) >= NAMES) {
    for (; *name && n + 1 < sizeof(without_digits); name++)
      if (*name < '0' || *name > '9')
        without_digits[n++] = *name;
    without_digits[n] = '\0';
    name = without_digits;
  }
  if (!is_known(name) && __atomic_fetch_add(&n_new, 1, __ATOMIC_RELAXED) >= 2 * NAMES) {
    tscope_count_lost(TSCOPE_LOSS_STRINGS, 1);
    return 0;
  }
  return tscope_string(NULL, name);
}

void tscope_definitions_write_thread(u32 number, u32 tid, const char *name) {
  struct tscope_thread_record record = {.thread = number, .tid = tid, .name = thread_name(name)};
  tscope_definitions_write(TSCOPE_REC_THREAD, 0, &record, sizeof(record));
}

static void write_schema(u8 type, u32 retention, const char *fields) {
  static struct with_text record; /* written once, while the process wakes */
  u32 length = set_text(&record, fields + 1, strlen(fields + 1));
  record.schema.bytes = length;
  record.schema.retention = retention;
  tscope_definitions_write(TSCOPE_REC_SCHEMA, type, &record, whole_bytes(length));
}

void tscope_definitions_write_schema(void) {
#define FIELD(type, field, doc) "," #field ":" #type
#define X(NAME, name, id, retention, doc)                                                          \
  write_schema(id, TSCOPE_##retention, "" TSCOPE_FIELDS_##NAME(FIELD));
  TSCOPE_RECORDS(X)
#undef X
#undef FIELD
}
