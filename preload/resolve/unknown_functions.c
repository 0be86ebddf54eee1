/* SPDX-License-Identifier: MIT */
#include "resolve/unknown_functions.h"

#include <stdio.h>
#include <string.h>

#include "format/text_parts.h"
#include "record/fnv.h"
#include "resolve/elf_object.h"
#include "resolve/loaded_objects.h"

/* Their names begin so. What a driver exports is in no package: it is not looked at. cuBLASLt has
 * functions for itself that differ from version to version. */
static const struct {
  const char *library, *begins;
} libraries[] = {{"libnccl.so", "nccl"},
                 {"libcudart.so", "cuda"},
                 {"libcublas.so", "cublas"},
                 {"libcublasLt.so", "cublasLtMatmul"},
                 {"libnvshmem_host.so", "nvshmem"}};

/* Ascending hashes: scripts/lib/known_functions.py. */
static const u32 known[] = {
#include "known_functions.h"
};

enum { N_KNOWN = LENGTH_OF(known), MOST_OBJECTS = 16, TEXT = 240 };

/* Of one library. */
struct unknown {
  uintptr_t base;
  const char *begins;
  char library[48], names[TEXT];
  u32 n;
};

struct look {
  struct unknown found[MOST_OBJECTS];
  u32 n;
};

/* Used by the poller alone. */
static uintptr_t looked_at[4 * MOST_OBJECTS];
static u32 n_looked_at;

static bool is_known(const char *name) {
  u32 hash = (u32)tscope_fnv(TSCOPE_FNV_SEED, name, strlen(name)), low = 0, high = N_KNOWN;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (known[middle] < hash)
      low = middle + 1;
    else
      high = middle;
  }
  return low < N_KNOWN && known[low] == hash;
}

/* By the words that names of such functions have. */
static bool may_start_work(const char *name) {
  static const char *const words[] = {"Reduce", "Broadcast", "Bcast",    "Gather",  "Scatter",
                                      "Send",   "Recv",      "Put",      "Launch",  "Memcpy",
                                      "Memset", "Prefetch",  "emm",      "atmul",   "_put",
                                      "_get",   "reduce",    "alltoall", "collect", "broadcast"};
  for (const char *at = strstr(name, "All"); at; at = strstr(at + 3, "All"))
    if (!tscope_begins_with(at, "Alloc"))
      return true;
  for (size_t i = 0; i < LENGTH_OF(words); i++)
    if (strstr(name, words[i]))
      return true;
  return false;
}

static void see_function(const char *name, void *data) {
  struct unknown *unknown = data;
  if (!tscope_begins_with(name, unknown->begins) || !may_start_work(name) || is_known(name))
    return;
  if (unknown->n++ < 4 && strlen(unknown->names) + strlen(name) + 3 < TEXT)
    tscope_append(unknown->names, TEXT, "%s%s", *unknown->names ? ", " : "", name);
}

static bool is_new(uintptr_t base) {
  for (u32 i = 0; i < n_looked_at; i++)
    if (looked_at[i] == base)
      return false;
  if (n_looked_at == LENGTH_OF(looked_at))
    return false;
  looked_at[n_looked_at++] = base;
  return true;
}

static int see_object(struct dl_phdr_info *info, size_t bytes, void *data) {
  struct look *look = data;
  (void)bytes;
  struct elf_object object = elf_object_of(info);
  for (size_t i = 0; i < LENGTH_OF(libraries); i++) {
    if (!tscope_begins_with(object.soname, libraries[i].library) || look->n == MOST_OBJECTS ||
        !is_new(info->dlpi_addr))
      continue;
    struct unknown *unknown = &look->found[look->n++];
    *unknown = (struct unknown){.base = info->dlpi_addr, .begins = libraries[i].begins};
    snprintf(unknown->library, sizeof(unknown->library), "%s", object.soname);
    elf_object_each(&object, see_function, unknown);
  }
  return 0;
}

void unknown_functions_look(struct tscope_thread *poller) {
  static struct look look;
  look.n = 0;
  tscope_each_object(see_object, &look);
  for (u32 i = 0; i < look.n; i++) {
    struct unknown *unknown = &look.found[i];
    if (unknown->n > 4)
      tscope_append(unknown->names, TEXT, " and %u more", unknown->n - 4);
    if (unknown->n)
      tscope_info(poller, TSCOPE_INFO_UNKNOWN_FUNCTIONS, unknown->names, unknown->library);
  }
}

void unknown_functions_tick(struct tscope_thread *poller) {
  static u32 ticks;
  ticks++;
  if ((ticks & (ticks - 1)) == 0)
    unknown_functions_look(poller);
}
