/* SPDX-License-Identifier: MIT */
#include "callsites/known_stacks.h"

#include <sys/mman.h>

#include "record/lock.h"
#include "record/reserve.h"
#include "record/trace_definitions.h"

enum { KNOWN_FULL = KNOWN_SLOTS / 4 * 3 };

struct known_stacks known_stacks;

static u64 *map_slots(void) {
  void *slots = tscope_reserve_map(-1, KNOWN_SLOTS * sizeof(u64));
  return slots == MAP_FAILED ? NULL : slots;
}

bool known_stacks_init(void) {
  static struct tscope_lock lock;
  if (!tscope_lock(&lock))
    return false;
  if (!known_stacks.frames.slots)
    known_stacks.frames.slots = map_slots();
  if (!known_stacks.stacks.slots)
    known_stacks.stacks.slots = map_slots();
  bool ready = known_stacks.frames.slots && known_stacks.stacks.slots;
  tscope_unlock(&lock);
  return ready;
}

static void add_hash(struct hash_set *set, u64 hash) {
  for (u64 i = hash >> (64 - KNOWN_BITS);; i++) {
    u64 found = 0;
    if (__atomic_compare_exchange_n(&set->slots[i & (KNOWN_SLOTS - 1)], &found, hash, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
      __atomic_fetch_add(&set->n, 1, __ATOMIC_RELAXED);
      return;
    }
    if (found == hash)
      return;
  }
}

static bool is_full(const struct hash_set *set) {
  return __atomic_load_n(&set->n, __ATOMIC_RELAXED) >= KNOWN_FULL;
}

/* The tag is read after all else: as long as it is the frame's, what was read before is too. */
bool stack_frame_place(struct stack_walk *walk, u32 i, pid_t pid, bool *is_there) {
  const struct python_frame *frame = &walk->frames[i];
  u64 tag = 0;
  memory_window_open(&walk->window, pid);
  bool known =
      python_location_of(&python_here, python_read_window, &walk->window, frame, &walk->place);
  memory_window_open(&walk->window, pid);
  *is_there = python_tag(&python_here, python_read_window, &walk->window, frame->code, &tag) &&
              tag == frame->tag;
  return known && *is_there;
}

static bool write_frame(struct stack_walk *walk, u32 i, const struct python_process *process) {
  const struct python_location *place = &walk->place;
  struct tscope_frame_record record = {.frame = walk->keys[i]};
  bool is_there, known = stack_frame_place(walk, i, process->pid, &is_there);
  if (!is_there)
    return false;
  if (known) {
    record.file = tscope_string(NULL, place->file);
    record.function = tscope_string(NULL, place->function);
    record.line = place->line;
    record.first_line = place->first_line;
  }
  return tscope_definitions_write(TSCOPE_REC_FRAME, 0, &record, sizeof(record));
}

static bool write_native_frame(const struct stack_walk *walk, u32 i) {
  struct native_address name;
  native_here_name(walk->addresses[i], &name);
  struct tscope_native_frame_record record = {
      .frame = walk->keys[i],
      .offset = name.offset,
      .library = *name.file ? tscope_string(NULL, name.file) : 0,
      .build_id = *name.build_id ? tscope_string(NULL, name.build_id) : 0};
  return tscope_definitions_write(TSCOPE_REC_NATIVE_FRAME, 0, &record, sizeof(record));
}

TSCOPE_NOINLINE bool stack_define(struct stack_walk *walk, u64 hash,
                                  const struct python_process *process) {
  if (is_full(&known_stacks.stacks) || is_full(&known_stacks.frames)) {
    tscope_count_lost(TSCOPE_LOSS_STACKS, 1);
    return false;
  }
  for (u32 i = 0; i < walk->n; i++)
    if (!hash_set_has(&known_stacks.frames, walk->keys[i])) {
      if (!(process ? write_frame(walk, i, process) : write_native_frame(walk, i)))
        return false;
      add_hash(&known_stacks.frames, walk->keys[i]);
    }
  walk->stack.record =
      (struct tscope_stack_record){.stack = hash, .frames = walk->n, .cut = walk->more};
  memcpy(walk->stack.keys, walk->keys, walk->n * sizeof(*walk->keys));
  if (!tscope_definitions_write(TSCOPE_REC_STACK, 0, &walk->stack,
                                (u32)(sizeof(walk->stack.record) + walk->n * sizeof(*walk->keys))))
    return false;
  add_hash(&known_stacks.stacks, hash);
  return true;
}

u64 stack_in_trace(struct stack_walk *walk, const struct python_process *process) {
  u64 hash = stack_hash(walk);
  return stack_is_known(hash) || stack_define(walk, hash, process) ? hash : 0;
}
