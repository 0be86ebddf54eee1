/* SPDX-License-Identifier: MIT
 *
 * Memory of tensors. PyTorch's allocators report each block allocated and freed, and each
 * allocation that failed, whether or not a profiler listens. These hooks run under the allocator's
 * own locks, as often as there are operators: they never wake the process and never wait. While a
 * profiler listens, one of these functions calls another about the same block. The guard holds
 * until the outer one returns, so the block counts once.
 *
 * Events are ring, and a long job overwrites them; how much was allocated and reserved is also
 * kept among the retained records, ten times a second while it changes, with the peaks between.
 */
#include "torch/tensor_memory.h"

#include "callsites/call_sites.h"
#include "record/atomics.h"
#include "record/trace_definitions.h"
#include "torch/torch_family.h"

#define DEVICES 32u /* a power of two; devices that one process has tensors on */

/* Totals as the allocator last reported them. The peaks are those since the last MEMORY record. */
struct device_totals {
  u32 key; /* c10::Device + 1; 0 while the place is free */
  u64 allocated, reserved;
  u64 peak_allocated, peak_reserved;
  u64 obtained, given_back;
  u64 recorded; /* events that the last MEMORY record counted */
} __attribute__((aligned(64)));

static struct device_totals devices[DEVICES];
static bool has_more_devices; /* than the table has room for */

/* NULL beyond the table. */
static struct device_totals *totals_of(u16 device) {
  const u32 key = device + 1u;
  u32 place = (device >> 8) + 7u * (device & 0xff);
  for (u32 probe = 0; probe < DEVICES; probe++, place++) {
    struct device_totals *totals = &devices[place & (DEVICES - 1)];
    u32 found = __atomic_load_n(&totals->key, __ATOMIC_RELAXED);
    if (TSCOPE_LIKELY(found == key))
      return totals;
    if (found == 0 && (__atomic_compare_exchange_n(&totals->key, &found, key, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                       found == key))
      return totals;
  }
  return NULL;
}

static u64 load(const u64 *value) {
  return __atomic_load_n(value, __ATOMIC_RELAXED);
}

/* An allocator reports one device's blocks one after the other, so the last report has the newest
 * totals; only the counts may be written from two allocators at once. */
static void update_totals(u16 device, i64 bytes, u64 allocated, u64 reserved) {
  struct device_totals *totals = totals_of(device);
  if (!totals) {
    __atomic_store_n(&has_more_devices, true, __ATOMIC_RELAXED);
    return;
  }
  __atomic_store_n(&totals->allocated, allocated, __ATOMIC_RELAXED);
  __atomic_store_n(&totals->reserved, reserved, __ATOMIC_RELAXED);
  tscope_atomic_max(&totals->peak_allocated, allocated);
  tscope_atomic_max(&totals->peak_reserved, reserved);
  __atomic_fetch_add(bytes < 0 ? &totals->given_back : &totals->obtained, 1, __ATOMIC_RELAXED);
}

static void record_totals(struct tscope_thread *thread, u16 device, struct device_totals *totals) {
  u64 obtained = load(&totals->obtained), given_back = load(&totals->given_back);
  if (obtained + given_back == totals->recorded)
    return;
  totals->recorded = obtained + given_back;
  struct tscope_memory_record record = {
      .allocated = load(&totals->allocated),
      .reserved = load(&totals->reserved),
      .obtained = obtained,
      .given_back = given_back,
  };
  record.peak_allocated =
      __atomic_exchange_n(&totals->peak_allocated, record.allocated, __ATOMIC_RELAXED);
  record.peak_reserved =
      __atomic_exchange_n(&totals->peak_reserved, record.reserved, __ATOMIC_RELAXED);
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_MEMORY, device, &record, sizeof(record));
}

_Static_assert(DEVICES == 32, "the text below says so");

void tensor_memory_record(struct tscope_thread *thread) {
  static bool said;
  if (__atomic_load_n(&has_more_devices, __ATOMIC_RELAXED))
    tscope_say_once(&said, "only of the first 32 devices", "totals of memory");
  for (u32 i = 0; i < DEVICES; i++) {
    u32 key = __atomic_load_n(&devices[i].key, __ATOMIC_RELAXED);
    if (key)
      record_totals(thread, (u16)(key - 1), &devices[i]);
  }
}

static void record_call_site(struct tscope_thread *thread, u64 now, i64 bytes) {
  const i64 large = 1 << 20;
  if (bytes > 0)
    call_site(thread, &thread->ring, now, bytes < large ? CALL_SITE_SAMPLED : CALL_SITE_LARGE);
}

void record_tensor(struct tscope_thread *thread, u16 device, const void *address, i64 bytes) {
  u64 now = tscope_ticks();
  record_call_site(thread, now, bytes);
  struct tscope_tensor_record *record =
      tscope_reserve(thread, &thread->ring, now, TSCOPE_REC_TENSOR, device, sizeof(*record));
  if (!record)
    return;
  record->bytes = bytes;
  record->address = (u64)(uintptr_t)address;
  tscope_commit(&thread->ring, sizeof(*record));
}

void record_tensor_totals(struct tscope_thread *thread, u16 device, const void *address, i64 bytes,
                          u64 allocated, u64 reserved) {
  update_totals(device, bytes, allocated, reserved);
  u64 now = tscope_ticks();
  record_call_site(thread, now, bytes);
  struct tscope_tensor_totals_record *record =
      tscope_reserve(thread, &thread->ring, now, TSCOPE_REC_TENSOR_TOTALS, device, sizeof(*record));
  if (!record)
    return;
  record->bytes = bytes;
  record->address = (u64)(uintptr_t)address;
  record->allocated = allocated;
  record->reserved = reserved;
  tscope_commit(&thread->ring, sizeof(*record));
}

void record_tensor_refused(struct tscope_thread *thread, u16 device, i64 bytes, u64 allocated,
                           u64 reserved) {
  struct tscope_out_of_memory_record record = {
      .bytes = (u64)bytes,
      .allocated = allocated,
      .reserved = reserved,
      .device_free = UINT64_MAX,
      .device_total = UINT64_MAX,
      .device = device,
  };
  u64 now = tscope_ticks();
  call_site(thread, &thread->retained, now, CALL_SITE_ALWAYS);
  tscope_retain(thread, now, TSCOPE_REC_OUT_OF_MEMORY, TSCOPE_REFUSAL_ALLOCATOR, &record,
                sizeof(record));
}
