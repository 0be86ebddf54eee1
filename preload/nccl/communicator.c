/* SPDX-License-Identifier: MIT */
#include "nccl/communicator.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hooks/handle_map.h"
#include "record/fnv.h"

enum { MAX_COMMUNICATORS = 2048, MAX_PENDING = 64 };

const char *const tscope_nccl_sonames[] = {"libnccl.so.2", NULL};
const char *(*communicator_label)(void);

HANDLE_MAP(by_handle, 4 * MAX_COMMUNICATORS);

/* All guarded by by_handle's lock. A communicator's entry is used again after it is forgotten. */
static struct communicator communicators[MAX_COMMUNICATORS];
static u32 free_places[MAX_COMMUNICATORS];
static u32 n_free, n_places, n_numbers;
static struct pending_communicator pending_list[MAX_PENDING];
static u32 n_pending;

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
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  u64 seed[] = {(u64)now.tv_sec, (u64)now.tv_nsec, (u64)getpid(),
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

static nccl_asks_state state_function(const struct tscope_thread *thread) {
  static struct tscope_symbol state[] = TSCOPE_QUERY("ncclCommGetAsyncError", tscope_nccl_sonames);
  return tscope_query_function(state, thread);
}

/* Asks the real library for what the creating call did not say. NCCL complains in the job's log if
 * a communicator is queried before it is ready, so that is checked first. */
static bool query(const struct tscope_thread *thread, ncclComm_t handle,
                  struct communicator *comm) {
  static struct tscope_symbol count[] = TSCOPE_QUERY("ncclCommCount", tscope_nccl_sonames);
  static struct tscope_symbol user_rank[] = TSCOPE_QUERY("ncclCommUserRank", tscope_nccl_sonames);
  static struct tscope_symbol device[] = TSCOPE_QUERY("ncclCommCuDevice", tscope_nccl_sonames);
  nccl_asks_state get_state = state_function(thread);
  ncclResult_t now = ncclSuccess;
  if (get_state && (get_state(handle, &now) != ncclSuccess || now != ncclSuccess))
    return false;
  const struct {
    struct tscope_symbol *symbols;
    void *into;
    bool known;
  } questions[] = {{count, &comm->size, comm->size != 0},
                   {user_rank, &comm->rank, comm->rank != TSCOPE_UNKNOWN_RANK},
                   {device, &comm->device, comm->device >= 0}};
  for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
    ncclResult_t (*get)(ncclComm_t, int *) = tscope_query_function(questions[i].symbols, thread);
    int answer;
    if (!questions[i].known && get && get(handle, &answer) == ncclSuccess)
      memcpy(questions[i].into, &answer, sizeof(answer));
  }
  return true;
}

static void announce(struct tscope_thread *thread, struct communicator *comm) {
  if (__atomic_exchange_n(&comm->announced, 1, __ATOMIC_ACQ_REL))
    return;
  struct tscope_comm_record record = {
      .identity = comm->identity,
      .parent = comm->parent,
      .comm = comm->number,
      .rank = comm->rank,
      .size = comm->size,
      .device = comm->device,
      .color = comm->color,
      .name = comm->name,
      .dur = comm->create_dur,
  };
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_COMM, TSCOPE_BACKEND_NCCL, &record,
                sizeof(record));
}

/* Adds a communicator under its handle. If the handle is already there, tscope did not see the end
 * of the old communicator, which is gone. */
static struct communicator *enter(ncclComm_t handle, const struct communicator *made) {
  if (!tscope_lock(&by_handle.lock))
    return NULL;
  struct communicator *comm = NULL;
  u64 place;
  bool known = handle_map_get(&by_handle, (u64)(uintptr_t)handle, &place);
  if (!known)
    place = n_free                         ? free_places[--n_free]
            : n_places < MAX_COMMUNICATORS ? n_places++
                                           : MAX_COMMUNICATORS;
  if (place < MAX_COMMUNICATORS) {
    communicators[place] = *made;
    communicators[place].number = n_numbers++;
    communicators[place].handle = handle;
    if (known || handle_map_put_locked(&by_handle, (u64)(uintptr_t)handle, place))
      comm = &communicators[place];
    else
      free_places[n_free++] = (u32)place;
  }
  tscope_unlock(&by_handle.lock);
  return comm;
}

struct communicator *communicator_get(struct tscope_thread *thread, ncclComm_t handle) {
  if (!handle)
    return NULL;
  struct communicator *comm;
  u64 place;
  if (TSCOPE_LIKELY(handle_map_get(&by_handle, (u64)(uintptr_t)handle, &place)))
    comm = &communicators[place];
  else
    comm = enter(handle,
                 &(struct communicator){.rank = TSCOPE_UNKNOWN_RANK, .device = -1, .color = -1});
  if (comm && TSCOPE_UNLIKELY(!__atomic_load_n(&comm->announced, __ATOMIC_ACQUIRE))) {
    int saved = errno;
    query(thread, handle, comm);
    announce(thread, comm);
    errno = saved;
  }
  return comm;
}

static void wait_for(const struct pending_communicator *pending) {
  if (!tscope_lock(&by_handle.lock))
    return;
  if (n_pending < MAX_PENDING)
    pending_list[n_pending++] = *pending;
  tscope_unlock(&by_handle.lock);
}

void communicator_made(struct tscope_thread *thread, const struct pending_communicator *pending,
                       ncclResult_t result) {
  if ((result != ncclSuccess && result != ncclInProgress) || !pending->handle)
    return;
  ncclComm_t handle = __atomic_load_n(pending->handle, __ATOMIC_ACQUIRE);
  if (!handle) {
    if (result == ncclInProgress && pending->parent_handle)
      wait_for(pending);
    return;
  }
  struct communicator *comm =
      enter(handle, &(struct communicator){
                        .identity = pending->identity,
                        .parent = pending->parent,
                        .create_dur = (tscope_ticks() - pending->start) >> thread->tick_shift,
                        .rank = pending->rank,
                        .size = pending->size,
                        .device = pending->device,
                        .color = pending->color,
                        .name = pending->name,
                    });
  if (!comm)
    return;
  /* One that is not ready is announced at its first use, when the job knows that it is. */
  bool ready = query(thread, handle, comm);
  if (ready || pending->rank != TSCOPE_UNKNOWN_RANK)
    announce(thread, comm);
  if (ready && result == ncclSuccess && pending->blocks)
    __atomic_store_n(&comm->ask, state_function(thread), __ATOMIC_RELEASE);
}

/* Removes one pending communicator that waits for `handle` from the list. */
static bool take_pending(ncclComm_t handle, struct pending_communicator *pending) {
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
  while (take_pending(handle, &pending))
    communicator_made(thread, &pending, ncclSuccess);
}

static struct communicator *known(ncclComm_t handle) {
  u64 place;
  return handle && handle_map_get(&by_handle, (u64)(uintptr_t)handle, &place)
             ? &communicators[place]
             : NULL;
}

bool communicator_heard(ncclComm_t handle, ncclResult_t error) {
  struct communicator *comm = known(handle);
  return !comm || __atomic_exchange_n(&comm->heard, error, __ATOMIC_RELAXED) != error;
}

void communicator_ask_no_more(ncclComm_t handle) {
  struct communicator *comm = known(handle);
  if (comm)
    __atomic_store_n(&comm->ask, NULL, __ATOMIC_RELEASE);
}

u32 communicator_places(void) {
  return __atomic_load_n(&n_places, __ATOMIC_RELAXED);
}

bool communicator_visit(u32 place, void (*look)(struct communicator *, void *), void *with) {
  if (!tscope_lock_within(&by_handle.lock, 0))
    return false;
  bool there = communicators[place].handle != NULL;
  if (there)
    look(&communicators[place], with);
  tscope_unlock(&by_handle.lock);
  return there;
}

u32 communicator_forget(struct tscope_thread *thread, ncclComm_t handle) {
  u64 place;
  if (!handle || !handle_map_get(&by_handle, (u64)(uintptr_t)handle, &place))
    return TSCOPE_UNKNOWN;
  struct communicator *comm = &communicators[place];
  __atomic_store_n(&comm->ask, NULL, __ATOMIC_RELEASE);
  announce(thread, comm);
  u32 number = comm->number;
  if (tscope_lock(&by_handle.lock)) {
    if (handle_map_take_locked(&by_handle, (u64)(uintptr_t)handle, &place)) {
      communicators[place].handle = NULL;
      free_places[n_free++] = (u32)place;
    }
    tscope_unlock(&by_handle.lock);
  }
  /* A pending communicator that waits for this handle would later read a variable that may be
   * gone. */
  struct pending_communicator pending;
  while (take_pending(handle, &pending))
    ;
  return number;
}

u32 communicator_number(ncclComm_t handle) {
  const struct communicator *comm = known(handle);
  return comm ? comm->number : TSCOPE_UNKNOWN;
}
