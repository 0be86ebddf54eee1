/* SPDX-License-Identifier: MIT */
#include "import/summary/summary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "base/output_file.h"
#include "import/byte_source.h"
#include "import/file_budget.h"
#include "model/rank_lists.def"

#define MOST_PART (1u << 30)

/* The names of all that a summary holds, in order: a summary of other things has another layout.
 * The version counts what no table names: the functions that carry values. */
u64 summary_layout(void) {
#define NAME(member) #member " "
#define NAME_AFTER(member, other) #member " "
#define LIST(list, element, FIELDS) #list "{" FIELDS(NAME, NAME_AFTER, NAME_AFTER, NAME, NAME) "}"
#define STRUCT(what, type, MEMBERS) #what "{" MEMBERS(NAME) "}"
  return hash_text(HASH_SEED, "17 " TSCOPE_VERSION " " RANK_LISTS(LIST) RANK_STRUCTS(STRUCT));
#undef NAME
#undef NAME_AFTER
#undef LIST
#undef STRUCT
}

static u32 check_of(const struct summary_entry *entry) {
  return (u32)crc32(0, (const void *)entry, offsetof(struct summary_entry, check));
}

u8 *summary_deflate(const struct carrier *written, struct summary_part *part) {
  uLong whole = written->written.n;
  uLongf room = compressBound(whole);
  u8 *bytes = memory_array(room, 1);
  static const u8 none;
  if (compress2(bytes, &room, whole ? written->written.at : &none, whole, Z_DEFAULT_COMPRESSION))
    memory_is_short(room, 1);
  *part = (struct summary_part){.bytes = (u32)room,
                                .whole = (u32)whole,
                                .hash = hash_bytes(HASH_SEED, written->written.at, whole)};
  return memory_resized(bytes, room, 1);
}

static void place_part(struct summary_part *part, const u8 *bytes, FILE *out) {
  if (part->bytes == 0)
    return;
  part->offset = (u64)ftello(out);
  fwrite(bytes, 1, part->bytes, out);
}

static void write_to(FILE *out, struct summary_made *made, u32 n) {
  struct summary_header header = {.layout = summary_layout(), .entries = n};
  memcpy(header.magic, SUMMARY_MAGIC, sizeof(header.magic));
  fwrite(&header, sizeof(header), 1, out);
  FOR_EACH_CHANGED(made, n, each) {
    place_part(&each->entry.facts, each->facts, out);
    place_part(&each->entry.found, each->found, out);
    each->entry.check = check_of(&each->entry);
  }
  header.table = (u64)ftello(out);
  FOR_EACH(made, n, one)
    fwrite(&one->entry, sizeof(one->entry), 1, out);
  fseeko(out, 0, SEEK_SET);
  fwrite(&header, sizeof(header), 1, out);
}

int summary_write(const char *path, struct summary_made *made, u32 n) {
  struct output_file file;
  int error = output_file_open(&file, path);
  if (error)
    return error;
  write_to(file.out, made, n);
  return output_file_close(&file, 0);
}

static bool read_at(int file, void *to, size_t n, u64 offset) {
  return file_read_at(file, to, n, offset) == n;
}

static bool part_is_within(const struct summary_part *part, u64 size) {
  return part->bytes <= size && part->offset <= size - part->bytes && part->whole <= MOST_PART;
}

static int read_table(int file, u64 size, struct summary_entry **entries, u32 *n, char *why,
                      size_t why_bytes) {
  struct summary_header header;
  if (!read_at(file, &header, sizeof(header), 0) ||
      memcmp(header.magic, SUMMARY_MAGIC, sizeof(header.magic)) != 0) {
    snprintf(why, why_bytes, "is not a summary of tscope reduce");
    return -EINVAL;
  }
  if (header.layout != summary_layout()) {
    snprintf(why, why_bytes,
             "was written by another version of tscope: run tscope reduce again with this one");
    return -EINVAL;
  }
  u64 bytes = (u64)header.entries * sizeof(**entries);
  if (header.table > size || bytes > size - header.table) {
    snprintf(why, why_bytes, "is cut off, as by a full disk: run tscope reduce again");
    return -EINVAL;
  }
  *entries = memory_array(size_sum(header.entries, 1), sizeof(**entries));
  if (!read_at(file, *entries, bytes, header.table)) {
    snprintf(why, why_bytes, "cannot be read");
    return -EIO;
  }
  *n = KEEP_WHERE(*entries, header.entries, entry,
                  entry->check == check_of(entry) && part_is_within(&entry->facts, size) &&
                      part_is_within(&entry->found, size));
  if (*n < header.entries)
    snprintf(why, why_bytes, "is damaged: %u of its %u ranks cannot be read", header.entries - *n,
             header.entries);
  return 0;
}

int summary_list(const char *path, struct summary_entry **entries, u32 *n, char *why,
                 size_t why_bytes) {
  struct stat status;
  *entries = NULL;
  *n = 0;
  why[0] = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &status) != 0) {
    int error = -errno;
    snprintf(why, why_bytes, "cannot be opened: %s", strerror(-error));
    if (file >= 0)
      close(file);
    return error;
  }
  int error = read_table(file, (u64)status.st_size, entries, n, why, why_bytes);
  close(file);
  return error;
}

u8 *summary_copy(const char *path, const struct summary_part *part) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  u8 *bytes = file < 0 ? NULL : memory_array(size_sum(part->bytes, 1), 1);
  if (bytes && !read_at(file, bytes, part->bytes, part->offset)) {
    free(bytes);
    bytes = NULL;
  }
  if (file >= 0)
    close(file);
  return bytes;
}

const u8 *summary_read(const char *path, const struct summary_part *part, struct arena *arena) {
  SCOPED u8 *bytes = summary_copy(path, part);
  u8 *whole = NULL;
  uLongf n = part->whole;
  if (bytes && budget_inflate(part->whole)) {
    whole = arena_alloc(arena, size_sum(part->whole, 1));
    if (uncompress(whole, &n, bytes, part->bytes) != Z_OK || n != part->whole ||
        hash_bytes(HASH_SEED, whole, n) != part->hash)
      whole = NULL;
  }
  return whole;
}
