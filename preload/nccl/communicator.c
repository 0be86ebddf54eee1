/* SPDX-License-Identifier: MIT */
#include "nccl/communicator.h"

#include <string.h>
#include <unistd.h>

#include "hooks/handle_map.h"
#include "record/fnv.h"
#include "record/tick_clock.h"

enum { MAX_COMMUNICATORS = 2048, MAX_PENDING = 64, MAX_QUERY_NS = 1000000000 };

const char *const tscope_nccl_sonames[] = {"libnccl.so.2", NULL};
const char *(*communicator_label)(void);

HANDLE_MAP(by_handle, 4 * MAX_COMMUNICATORS);

/* All guarded by by_handle's lock. A communicator's slot is used again after it is removed. */
static struct communicator communicators[MAX_COMMUNICATORS];
static u32 free_slots[MAX_COMMUNICATORS];
static u32 n_free, n_slots, n_numbers;
static struct pending_communicator pending_list[MAX_PENDING];
static u32 n_pending;

/* Held while NCCL is queried about the communicator `queried`. No other lock is held then. */
static struct tscope_lock querying;
static struct communicator *queried;

static u64 mix(u64 hash, const void *bytes, size_t n) {
  hash = tscope_fnv(hash, bytes, n);
  hash ^= hash >> 32;
  return hash ? hash : 1;
}

u64 communicator_identity(const ncclUniqueId *ids, int n_ids) {
  return ids && n_ids > 0 ? mix(TSCOPE_FNV_SEED, ids, (size_t)n_ids * sizeof(*ids)) : 0;
}

u64 communicator_identity_private(void) {
  static u32 made;
  u64 seed[] = {tscope_clock_ns(CLOCK_REALTIME), (u64)getpid(),
                __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED)};
  return mix(TSCOPE_FNV_SEED, seed, sizeof(seed));
}

u64 communicator_identity_child(u64 parent, u32 ordinal, i32 color, const char *kind) {
  if (!parent)
    return 0;
  u64 hash = mix(TSCOPE_FNV_SEED, kind, strlen(kind));
  hash = mix(hash, &parent, sizeof(parent));
  hash = mix(hash, &ordinal, sizeof(ordinal));
  return mix(hash, &color, sizeof(color));
}

static nccl_get_state state_function(const struct tscope_thread *thread) {
  return NCCL_FUNCTION("ncclCommGetAsyncError", thread);
}

static bool ask(ncclResult_t (*get)(ncclComm_t, int *), ncclComm_t handle, int *answer) {
  return get && get(handle, answer) == ncclSuccess;
}

/* Queries the real library for what the creating call did not say. NCCL complains in the job's log
 * if a communicator is queried before it is ready, so that is checked first. */
static bool query(const struct tscope_thread *thread, ncclComm_t handle,
                  struct communicator *comm) {
  nccl_get_state get_state = state_function(thread);
  ncclResult_t now = ncclSuccess;
  if (get_state && (get_state(handle, &now) != ncclSuccess || now != ncclSuccess))
    return false;
  int answer;
  if (!comm->size && ask(NCCL_FUNCTION("ncclCommCount", thread), handle, &answer))
    comm->size = (u32)answer;
  if (comm->rank == TSCOPE_UNKNOWN_RANK &&
      ask(NCCL_FUNCTION("ncclCommUserRank", thread), handle, &answer))
    comm->rank = (u32)answer;
  if (comm->device < 0 && ask(NCCL_FUNCTION("ncclCommCuDevice", thread), handle, &answer))
    comm->device = answer;
  return true;
}

static void write_comm(struct tscope_thread *thread, struct communicator *comm) {
  if (__atomic_exchange_n(&comm->recorded, 1, __ATOMIC_ACQ_REL))
    return;
  struct tscope_comm_record record = {
      .identity = comm->identity,
      .parent = comm->parent,
      .comm = comm->number,
      .rank = comm->rank,
      .size = comm->size,
      .device = comm->device,
      .color = comm->color,
      .name = __atomic_load_n(&comm->name, __ATOMIC_RELAXED),
      .dur = comm->create_dur,
  };
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_COMM, TSCOPE_BACKEND_NCCL, &record,
                sizeof(record));
}

static void fill_slot(struct communicator *comm, const struct communicator *made) {
  memcpy(comm, made, offsetof(struct communicator, number));
  __atomic_store_n(&comm->number, n_numbers++, __ATOMIC_RELAXED);
  __atomic_store_n(&comm->get_state, made->get_state, __ATOMIC_RELEASE);
}

/* Adds a communicator under its handle. If the handle is already there, tscope did not see the end
 * of the old communicator, which does not exist any more. */
static struct communicator *add_communicator(ncclComm_t handle, const struct communicator *made) {
  if (!tscope_lock(&by_handle.lock))
    return NULL;
  struct communicator *comm = NULL;
  u64 slot;
  bool known = handle_map_get(&by_handle, (u64)(uintptr_t)handle, &slot);
  if (!known)
    slot = n_free                        ? free_slots[--n_free]
           : n_slots < MAX_COMMUNICATORS ? n_slots++
                                         : MAX_COMMUNICATORS;
  if (slot < MAX_COMMUNICATORS) {
    fill_slot(&communicators[slot], made);
    communicators[slot].handle = handle;
    if (known || handle_map_put_locked(&by_handle, (u64)(uintptr_t)handle, slot))
      comm = &communicators[slot];
    else
      free_slots[n_free++] = (u32)slot;
  }
  tscope_unlock(&by_handle.lock);
  if (!comm)
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
  return comm;
}

struct communicator *communicator_get(struct tscope_thread *thread, ncclComm_t handle) {
  if (!handle)
    return NULL;
  struct communicator *comm;
  u64 slot;
  if (TSCOPE_LIKELY(handle_map_get(&by_handle, (u64)(uintptr_t)handle, &slot)))
    comm = &communicators[slot];
  else
    comm = add_communicator(
        handle, &(struct communicator){.rank = TSCOPE_UNKNOWN_RANK, .device = -1, .color = -1});
  if (comm && TSCOPE_UNLIKELY(!__atomic_load_n(&comm->recorded, __ATOMIC_ACQUIRE))) {
    TSCOPE_KEEP_ERRNO;
    query(thread, handle, comm);
    write_comm(thread, comm);
  }
  return comm;
}

/* Gives the name to one communicator that waits for `thread` to name it. NULL if there is none. */
static struct communicator *name_next(const struct tscope_thread *thread, u32 name, bool final,
                                      u32 *slot) {
  struct communicator *named = NULL;
  if (!tscope_lock(&by_handle.lock))
    return NULL;
  for (; *slot < n_slots && !named; ++*slot) {
    struct communicator *comm = &communicators[*slot];
    if (comm->handle && comm->namer == thread &&
        !__atomic_load_n(&comm->recorded, __ATOMIC_ACQUIRE)) {
      if (name) /* another thread may use the communicator, and record it, at this moment */
        __atomic_store_n(&comm->name, name, __ATOMIC_RELAXED);
      comm->namer = final ? NULL : thread;
      named = comm;
    }
  }
  tscope_unlock(&by_handle.lock);
  return named;
}

void communicators_named(struct tscope_thread *thread, const char *name, bool final) {
  u32 slot = 0, string = name[0] ? tscope_string(thread, name) : 0;
  struct communicator *comm;
  while ((comm = name_next(thread, string, final, &slot)))
    if (final)
      write_comm(thread, comm);
}

static void add_pending(const struct pending_communicator *pending) {
  if (!tscope_lock(&by_handle.lock))
    return;
  if (n_pending < MAX_PENDING)
    pending_list[n_pending++] = *pending;
  else
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
  tscope_unlock(&by_handle.lock);
}

void communicator_created(struct tscope_thread *thread, const struct pending_communicator *pending,
                          ncclResult_t result) {
  if ((result != ncclSuccess && result != ncclInProgress) || !pending->handle)
    return;
  ncclComm_t handle = __atomic_load_n(pending->handle, __ATOMIC_ACQUIRE);
  if (!handle) {
    if (result == ncclInProgress && pending->parent_handle)
      add_pending(pending);
    return;
  }
  struct communicator *comm =
      add_communicator(handle, &(struct communicator){
                                   .identity = pending->identity,
                                   .parent = pending->parent,
                                   .create_dur = tscope_elapsed(thread, pending->start),
                                   .rank = pending->rank,
                                   .size = pending->size,
                                   .device = pending->device,
                                   .color = pending->color,
                                   .name = pending->name,
                                   .namer = pending->namer,
                               });
  if (!comm)
    return;
  /* One that is not ready, or has no name yet, is recorded at its first use: the job knows then
   * that it is ready. */
  bool ready = query(thread, handle, comm);
  if (!pending->namer && (ready || pending->rank != TSCOPE_UNKNOWN_RANK))
    write_comm(thread, comm);
  if (ready && result == ncclSuccess && pending->blocks)
    __atomic_store_n(&comm->get_state, state_function(thread), __ATOMIC_RELEASE);
}

/* Removes one pending communicator that waits for `handle` from the list. */
static bool pop_pending(ncclComm_t handle, struct pending_communicator *pending) {
  bool found = false;
  if (!__atomic_load_n(&n_pending, __ATOMIC_RELAXED) || !tscope_lock(&by_handle.lock))
    return false;
  for (u32 i = 0; i < n_pending && !found; i++) {
    found = pending_list[i].parent_handle == handle;
    if (found) {
      *pending = pending_list[i];
      pending_list[i] = pending_list[--n_pending];
    }
  }
  tscope_unlock(&by_handle.lock);
  return found;
}

void communicator_ready(struct tscope_thread *thread, ncclComm_t handle) {
  if (TSCOPE_LIKELY(!__atomic_load_n(&n_pending, __ATOMIC_RELAXED)))
    return;
  struct pending_communicator pending;
  while (pop_pending(handle, &pending))
    communicator_created(thread, &pending, ncclSuccess);
}

static struct communicator *find_communicator(ncclComm_t handle) {
  u64 slot;
  return handle && handle_map_get(&by_handle, (u64)(uintptr_t)handle, &slot) ? &communicators[slot]
                                                                             : NULL;
}

bool communicator_set_job_error(ncclComm_t handle, ncclResult_t error) {
  struct communicator *comm = find_communicator(handle);
  return !comm || __atomic_exchange_n(&comm->job_error, error, __ATOMIC_RELAXED) != error;
}

void communicator_stop_queries(ncclComm_t handle) {
  struct communicator *comm = find_communicator(handle);
  if (comm)
    __atomic_store_n(&comm->get_state, NULL, __ATOMIC_RELEASE);
}

u32 communicator_slots(void) {
  return __atomic_load_n(&n_slots, __ATOMIC_RELAXED);
}

bool communicator_visit(u32 slot, void (*visit)(struct communicator *, void *), void *with) {
  if (!tscope_lock_within(&by_handle.lock, 0))
    return false;
  bool there = communicators[slot].handle != NULL;
  if (there)
    visit(&communicators[slot], with);
  tscope_unlock(&by_handle.lock);
  return there;
}

bool communicator_query(u32 slot, u32 number, ncclComm_t handle, ncclResult_t *state) {
  struct communicator *comm = &communicators[slot];
  if (!tscope_lock_within(&querying, 0))
    return false;
  /* Whoever removes it clears get_state and then reads `queried`: it waits, or is seen here. */
  __atomic_store_n(&queried, comm, __ATOMIC_SEQ_CST);
  nccl_get_state get_state = __atomic_load_n(&comm->get_state, __ATOMIC_SEQ_CST);
  bool may_query = get_state && __atomic_load_n(&comm->number, __ATOMIC_RELAXED) == number;
  bool known = may_query && get_state(handle, state) == ncclSuccess &&
               (int)*state != TSCOPE_RESULT_IN_PROGRESS;
  if (may_query && !known) /* calls on it do not block after all, or it does not exist any more */
    __atomic_store_n(&comm->get_state, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&queried, NULL, __ATOMIC_RELEASE);
  tscope_unlock(&querying);
  return known;
}

static void wait_for_query(const struct communicator *comm) {
  if (__atomic_load_n(&queried, __ATOMIC_SEQ_CST) == comm &&
      tscope_lock_within(&querying, MAX_QUERY_NS))
    tscope_unlock(&querying);
}

u32 communicator_remove(struct tscope_thread *thread, ncclComm_t handle) {
  u64 slot;
  if (!handle || !handle_map_get(&by_handle, (u64)(uintptr_t)handle, &slot))
    return TSCOPE_UNKNOWN;
  struct communicator *comm = &communicators[slot];
  __atomic_store_n(&comm->get_state, NULL, __ATOMIC_SEQ_CST);
  wait_for_query(comm);
  write_comm(thread, comm);
  u32 number = comm->number;
  if (tscope_lock(&by_handle.lock)) {
    if (handle_map_remove_locked(&by_handle, (u64)(uintptr_t)handle, &slot)) {
      communicators[slot].handle = NULL;
      free_slots[n_free++] = (u32)slot;
    }
    tscope_unlock(&by_handle.lock);
  }
  /* A pending communicator that waits for this handle would later read a variable that may
   * not exist any more. */
  struct pending_communicator pending;
  while (pop_pending(handle, &pending))
    ;
  return number;
}

u32 communicator_number(ncclComm_t handle) {
  const struct communicator *comm = find_communicator(handle);
  return comm ? comm->number : TSCOPE_UNKNOWN;
}
