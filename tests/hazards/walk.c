/* SPDX-License-Identifier: MIT
 *
 * walk FILE...: reads traces according to docs/trace-format.md, without the analyzer's reader.
 * Prints one line per file: recorded launches, all records, records counted as lost, whether the
 * process ended normally. Exits with 1 if a committed record cannot be read.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/tscope_format.h"

struct totals {
  u64 launches;
  u64 records;
};

static int broken(const char *path, const char *what, u64 chunk) {
  fprintf(stderr, "%s: %s in chunk %llu\n", path, what, (unsigned long long)chunk);
  return 1;
}

static int walk_chunk(const char *path, const u8 *bytes, u64 number, struct totals *totals) {
  const struct tscope_chunk_header *chunk = (const void *)bytes;
  if (chunk->magic == 0)
    return 0; /* never used */
  if (chunk->magic != TSCOPE_CHUNK_MAGIC)
    return broken(path, "bad magic", number);
  u64 expected = chunk->committed >> 32, end = chunk->committed & UINT32_MAX, records = 0;
  if (chunk->header_bytes + end > TSCOPE_CHUNK_BYTES)
    return broken(path, "more committed than fits", number);
  for (u64 at = 0; at < end; records++) {
    const struct tscope_record *record = (const void *)(bytes + chunk->header_bytes + at);
    if (record->words == 0 || at + record->words * 8u > end)
      return broken(path, "a record beyond what is committed", number);
    totals->launches += record->type == TSCOPE_REC_LAUNCH;
    at += record->words * 8u;
  }
  totals->records += records;
  return records == expected ? 0 : broken(path, "another number of records than committed", number);
}

static int walk(const char *path) {
  struct stat stat;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &stat) || stat.st_size < (off_t)TSCOPE_HEADER_BYTES)
    return broken(path, "no header", 0);
  const u8 *bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED)
    return broken(path, "cannot be mapped", 0);
  const struct tscope_file_header *header = (const void *)bytes;
  struct totals totals = {0};
  int status = memcmp(header->magic, TSCOPE_MAGIC, 8) ? broken(path, "bad file magic", 0) : 0;
  for (u64 i = 0; !status && i < header->chunks; i++) {
    u64 at = header->header_bytes + i * header->chunk_bytes;
    if (at + header->chunk_bytes <= (u64)stat.st_size)
      status = walk_chunk(path, bytes + at, i, &totals);
  }
  u64 lost = 0;
  for (int i = 0; i < TSCOPE_LOSS_REASONS; i++)
    if (i != TSCOPE_LOSS_SHAPES && i != TSCOPE_LOSS_STRINGS)
      lost += header->lost[i];
  printf("%llu %llu %llu %d\n", (unsigned long long)totals.launches,
         (unsigned long long)totals.records, (unsigned long long)lost,
         header->closed_realtime_ns != 0);
  munmap((void *)bytes, (size_t)stat.st_size);
  return status;
}

int main(int argc, char **argv) {
  int status = 0;
  for (int i = 1; i < argc; i++)
    status |= walk(argv[i]);
  return status;
}
