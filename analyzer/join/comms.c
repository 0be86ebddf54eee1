/* SPDX-License-Identifier: MIT */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "join/joining.h"

/* Members of all communicators together: those that are here, and so many more. */
#define MOST_MISSING (1u << 22)
#define MOST_MISSING_FOR_EACH 1024u

struct sighting {
  u64 identity;
  u8 backend;
  u32 rank, definition;
};

ORDER_BY(by_identity, struct sighting, UP(identity) UP(backend) UP(rank))

static const struct comm_definition *definition_of(const struct model *model,
                                                   const struct sighting *sighting) {
  return &model_events(model, sighting->rank)->comms[sighting->definition];
}

/* Makes one communicator from what all its members say about it; `room` is how many members all
 * communicators may still have. */
static void make_comm(struct model *model, const struct sighting *sightings, u32 n, u64 *room,
                      struct comm *comm) {
  const struct comm_definition *first = definition_of(model, sightings);
  *comm = (struct comm){SAME(first, identity, parent, backend, library)};
  for (u32 i = 0; i < n; i++) {
    const struct comm_definition *definition = definition_of(model, &sightings[i]);
    if (definition->size > comm->size && definition->size <= *room &&
        size_is_borne_out(definition->size, n))
      comm->size = definition->size;
    if (!comm->name)
      comm->name = definition->name;
  }
  if (comm->size == 0)
    return;
  *room -= comm->size;
  comm->members = arena_array(model_arena(model), comm->size, sizeof(*comm->members));
  FILL(comm->members, comm->size, INDEX_NONE);
  FOR_EACH(sightings, n, each) {
    u32 place = definition_of(model, each)->rank;
    if (place < comm->size)
      comm->members[place] = each->rank;
  }
}

static void add_comm(struct model *model, const struct sighting *sightings, u32 n, u64 *room) {
  FOR_EACH(sightings, n, sighting)
    internal_of(model)->comm_of[sighting->rank][sighting->definition] = model->n_comms;
  make_comm(model, sightings, n, room, &model->comms[model->n_comms++]);
}

/* Those whose identity is not known may be one if no rank has two of them. */
static bool are_one(const struct sighting *sightings, u32 n) {
  return sightings->identity || !ANY_NUMBER(1, n, i, sightings[i].rank == sightings[i - 1].rank);
}

void unify_comms(struct model *model) {
  struct model_internal *internal = internal_of(model);
  SCOPED VECTOR(struct sighting) all = {0};
  for (u32 r = 0; r < model->n_ranks; r++) {
    const struct rank_events *events = model_events(model, r);
    internal->comm_of[r] =
        arena_array(model_arena(model), events->n_comms, sizeof(**internal->comm_of));
    for (u32 i = 0; i < events->n_comms; i++) {
      struct sighting sighting = {events->comms[i].identity, events->comms[i].backend, r, i};
      VECTOR_PUSH(&all, sighting);
    }
  }
  model->comms = arena_array(model_arena(model), all.n, sizeof(*model->comms));
  SORT(all.at, all.n, by_identity);
  u64 room = MOST_MISSING + (u64)MOST_MISSING_FOR_EACH * all.n;
  for (u32 i = 0, n; i < all.n; i += n) {
    n = ROW_OF_EQUALS(&all.at[i], all.n - i, a, b,
                      a->identity == b->identity && a->backend == b->backend);
    u32 members = are_one(&all.at[i], n) ? n : 1;
    for (u32 first = i; first < i + n; first += members)
      add_comm(model, &all.at[first], members, &room);
  }
}
