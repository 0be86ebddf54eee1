/* SPDX-License-Identifier: MIT
 *
 * A process group gets its name after it was made: torch.distributed constructs the
 * ProcessGroupGloo, registers it with a ProcessGroup and names that, all on one thread. So the name
 * goes to the nameless groups that the naming thread made. The name, with the size and how many
 * groups of that name came before, is the same on all members: it is the communicator's identity.
 * Groups are recorded when first used; by then they have their name.
 *
 * Groups on NCCL are here for their labels alone: their communicators are NCCL's, which
 * are created one by one when a group needs them, and get its label, or wait for it.
 */
#include "torch/gloo_comm.h"

#include <stdio.h>
#include <string.h>

#include "format/text_parts.h"
#include "hooks/handle_map.h"
#include "nccl/communicator.h"
#include "record/fnv.h"
#include "record/lock.h"
#include "torch/torch_record.h"

/* Numbers of NCCL communicators start at 0; a process has far fewer than this. */
#define GLOO_COMM_FIRST 0x10000u
#define GLOO_COMMS 1024

/* Its lock is for when a group is created, named, recorded or destroyed; never held during a call.
 */
HANDLE_MAP(by_group, 4 * GLOO_COMMS);

static struct gloo_comm gloo_comms[GLOO_COMMS];
static u32 n_recorded;

static struct gloo_comm *find_comm(const void *group) {
  u64 slot;
  return handle_map_get(&by_group, (u64)(uintptr_t)group, &slot) ? &gloo_comms[slot] : NULL;
}

static struct gloo_comm *free_slot(void) {
  for (struct gloo_comm *comm = gloo_comms; comm < gloo_comms + GLOO_COMMS; comm++)
    if (!comm->group)
      return comm;
  return NULL;
}

/* Names are used again when groups are destroyed and made anew ("0" is every first group's). Such
 * groups are distinguished by how many of the same name and size this process made before. */
static void set_identity(struct gloo_comm *comm) {
  HANDLE_MAP(seen, 8 * GLOO_COMMS);
  u64 earlier = 0;
  char text[128];
  snprintf(text, sizeof(text), "gloo %u %s", comm->size, comm->name);
  u64 stem = tscope_fnv(TSCOPE_FNV_SEED, text, strlen(text));
  handle_map_get(&seen, stem, &earlier);
  if (!handle_map_put(&seen, stem, earlier + 1)) /* the next one of that name will look the same */
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
  tscope_append(text, sizeof(text), " %u", (u32)earlier);
  comm->identity = tscope_fnv(TSCOPE_FNV_SEED, text, strlen(text));
}

static bool is_description(const char *text) {
  return text[0] && strcmp(text, "undefined");
}

/* What people call the group; "" if nobody does. */
static const char *label_of(const struct gloo_comm *comm) {
  return is_description(comm->text) ? comm->text : comm->name;
}

static void write_comm(struct tscope_thread *thread, struct gloo_comm *comm) {
  const char *name = label_of(comm);
  struct tscope_comm_record record = {
      .identity = comm->identity,
      .comm = comm->number,
      .rank = comm->rank,
      .size = comm->size,
      .device = -1,
      .color = -1,
      .name = name[0] ? tscope_string(thread, name) : 0,
      .dur = comm->dur,
  };
  tscope_retain(thread, comm->start, TSCOPE_REC_COMM, TSCOPE_BACKEND_GLOO, &record, sizeof(record));
}

struct gloo_comm *gloo_comm_of(struct tscope_thread *thread, const void *group) {
  struct gloo_comm *comm = find_comm(group);
  if (!comm)
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
  if (!comm || TSCOPE_LIKELY(__atomic_load_n(&comm->number, __ATOMIC_ACQUIRE)))
    return comm;
  if (!tscope_lock(&by_group.lock))
    return NULL;
  bool first = !comm->number;
  if (first) {
    set_identity(comm);
    __atomic_store_n(&comm->number, GLOO_COMM_FIRST + n_recorded++, __ATOMIC_RELEASE);
  }
  tscope_unlock(&by_group.lock);
  if (first)
    write_comm(thread, comm);
  return comm;
}

/* Making a gloo group is what a training process does and its launcher does not. Where the group is
 * known, its end was not seen: it is another one now. */
void group_made_begin(struct torch_scope *scope, const void *group, int rank, int size) {
  torch_scope_push(scope, SCOPE_PLAIN);
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return;
  scope->thread = thread;
  scope->start = tscope_ticks();
  scope->group = group;
  scope->comm = (u32)rank;
  scope->seq = (u32)size;
  tscope_leave(thread);
}

void group_made_end(struct torch_scope *scope) {
  torch_scope_pop(scope);
  if (!scope->thread || !tscope_is_live())
    return;
  if (!tscope_lock(&by_group.lock))
    return;
  struct gloo_comm *known = find_comm(scope->group), *comm = known ? known : free_slot();
  if (comm) {
    *comm = (struct gloo_comm){
        .group = scope->group,
        .creator = scope->thread,
        .start = scope->start,
        .dur = tscope_elapsed(scope->thread, scope->start),
        .rank = scope->comm,
        .size = scope->seq,
    };
    if (!handle_map_put_locked(&by_group, (u64)(uintptr_t)scope->group, (u64)(comm - gloo_comms)))
      comm->group = NULL;
  }
  tscope_unlock(&by_group.lock);
}

/* The group lives as long as the call, and so does its label. NULL: there is no label yet, and this
 * thread will give one. */
static const char *current_group_label(void) {
  const struct torch_scope *scope = torch_scope_find(SCOPE_COMM);
  const struct gloo_comm *comm = scope ? find_comm(scope->group) : NULL;
  const char *label = comm ? label_of(comm) : "";
  return scope && !label[0] ? NULL : label;
}

void nccl_comm_made_begin(struct torch_scope *scope, const void *group) {
  torch_scope_push(scope, SCOPE_COMM);
  scope->group = group;
  __atomic_store_n(&communicator_label, current_group_label, __ATOMIC_RELAXED);
}

void group_end_begin(struct torch_scope *scope, const void *group) {
  torch_scope_push(scope, SCOPE_PLAIN);
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  u32 number = 0;
  if (tscope_lock(&by_group.lock)) {
    u64 slot;
    if (handle_map_remove_locked(&by_group, (u64)(uintptr_t)group, &slot)) {
      number = gloo_comms[slot].number;
      gloo_comms[slot].group = NULL;
    }
    tscope_unlock(&by_group.lock);
  }
  if (number) {
    struct tscope_comm_end_record record = {.comm = number};
    tscope_retain(thread, tscope_ticks(), TSCOPE_REC_COMM_END, TSCOPE_COMM_END_DESTROY, &record,
                  sizeof(record));
  }
  tscope_leave(thread);
}

/* A std::string starts with the pointer to its characters, in the old ABI as in the new. */
static const char *string_text(const void *string) {
  return *(const char *const *)string;
}

/* Names what this thread made and did not name before. */
static void label_groups(const void *string, size_t offset) {
  const struct tscope_thread *thread = tscope_self;
  if (!thread || !tscope_is_live() || !tscope_lock(&by_group.lock))
    return;
  for (struct gloo_comm *comm = gloo_comms; comm < gloo_comms + GLOO_COMMS; comm++) {
    char *label = (char *)comm + offset;
    if (comm->group && comm->creator == thread && !comm->number && !label[0])
      snprintf(label, sizeof(comm->name), "%s", string_text(string));
  }
  tscope_unlock(&by_group.lock);
}

static void label_communicators(const char *name, bool final) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  communicators_named(thread, name, final);
  tscope_leave(thread);
}

void group_named_begin(struct torch_scope *scope, const void *name) {
  torch_scope_push(scope, SCOPE_PLAIN);
  label_groups(name, offsetof(struct gloo_comm, name));
  label_communicators(string_text(name), false);
}

void group_described_begin(struct torch_scope *scope, const void *text) {
  torch_scope_push(scope, SCOPE_PLAIN);
  label_groups(text, offsetof(struct gloo_comm, text));
  label_communicators(is_description(string_text(text)) ? string_text(text) : "", true);
}
