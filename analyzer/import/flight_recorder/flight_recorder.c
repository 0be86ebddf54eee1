/* SPDX-License-Identifier: MIT
 *
 * Reads the dumps of all ranks and combines them into one.
 */
#include "import/flight_recorder/flight_recorder.h"

#include <errno.h>
#include <stdio.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "import/import.h"
#include "import/pickle/pickle.h"
#include "import/read_values.h"

/* A recorder keeps some thousands of entries of a few hundred bytes. */

/* The most values that a reader may visit while it follows all references of a dump. No valid
 * dump has more. */
#define MOST_SPREAD 2e7

bool probe_flight(const struct input *input) {
  if (pickle_looks_like(input->head, input->head_bytes))
    return head_has(input, "pg_config") || head_has(input, "record_id") ||
           (head_has(input, "version") && head_has(input, "entries"));
  size_t blank = strspn((const char *)input->head, " \t\r\n");
  return blank < input->head_bytes && input->head[blank] == '{' &&
         (head_has(input, "\"pg_config\"") || head_has(input, "\"record_id\"")) &&
         !head_has(input, "\"traceEvents\"") && !head_has(input, "\"distributedInfo\"") &&
         !head_has(input, "\"schemaVersion\"") && !head_has(input, "\"deviceProperties\"");
}

const char *draft_keep_text(struct draft *draft, const char *text, size_t n) {
  struct value value;
  if (!text)
    return NULL;
  value_make_text(&draft->texts, VALUE_STR, text, (u32)n, &value);
  return value.text;
}

static int check(const struct value *root, char *why, size_t why_bytes) {
  if (value_spread(root) > MOST_SPREAD) {
    snprintf(why, why_bytes, "has references that are too many to follow");
    return -E2BIG;
  }
  const char *version = value_text(value_get(root, "version"));
  if (root->kind != VALUE_DICT || !(value_get(root, "entries") || value_get(root, "pg_config"))) {
    snprintf(why, why_bytes, "has neither entries nor process groups");
    return -EBADMSG;
  }
  if (version && !text_starts_with(version, "2.")) {
    snprintf(why, why_bytes, "has format version %.20s; 2.x is known", version);
    return -EPROTO;
  }
  return 0;
}

static bool member(const struct draft *draft, u32 group, u32 rank) {
  const struct flight_group *g = &draft->groups.at[group];
  return SORTED_INDEX(g->n_members, i, g->members[i], rank) != INDEX_NONE;
}

/* The groups in a dump are those that its rank is a member of. */
static bool may_be_rank(const struct draft *draft, const dump_groups *groups, u32 rank) {
  FOR_EACH(groups->at, groups->n, group)
    if (draft->groups.at[group->group].n_members && !member(draft, group->group, rank))
      return false;
  return !ANY(draft->ranks.at, draft->ranks.n, one, one->rank == rank);
}

/* The only rank that is in all of the groups. */
static u32 find_only_rank(const struct draft *draft, const dump_groups *groups) {
  u32 found = INDEX_NONE;
  for (u32 i = 0; i < groups->n; i++) {
    const struct flight_group *g = &draft->groups.at[groups->at[i].group];
    if (g->n_members == 0)
      continue;
    FOR_EACH(g->members, g->n_members, member) {
      if (!may_be_rank(draft, groups, *member))
        continue;
      if (found != INDEX_NONE)
        return INDEX_NONE;
      found = *member;
    }
    return found;
  }
  return INDEX_NONE;
}

static u32 rank_of_dump(const struct draft *draft, const struct value *root, const char *name,
                        const dump_groups *groups) {
  struct name_ranks named;
  u32 rank = value_rank(value_get(root, "rank"));
  if (rank != INDEX_NONE)
    return rank;
  dump_name_ranks(name, &named);
  FOR_EACH(named.at, named.n, one)
    if (may_be_rank(draft, groups, *one))
      return *one;
  return find_only_rank(draft, groups);
}

/* All dumps of a job have one version. */
static void read_version(struct import *import, struct draft *draft, const struct value *root,
                         const char *name) {
  const struct value *version = value_get(root, "version");
  if (!value_text(version))
    return;
  if (draft->version && strcmp(draft->version, version->text) != 0) {
    model_note(import->model, "%s is of version %s, others of %s", name, version->text,
               draft->version);
    return;
  }
  draft->version =
      draft->version ? draft->version : draft_keep_text(draft, version->text, version->n);
}

static void add_rank(struct draft *draft, const struct input *input, u32 rank, u32 first_call) {
  u32 n = draft->calls.n - first_call;
  const struct flight_call *first = n ? &draft->calls.at[first_call] : NULL;
  struct flight_rank known = {.rank = rank,
                              .host = dump_name_host(draft, input->name),
                              .path = input->path,
                              .seen = true,
                              .first_call = first_call,
                              .n_calls = n,
                              .first_created = first ? first->created : NS_UNKNOWN,
                              .last_seen = NS_UNKNOWN,
                              .kept_all = !first || first->order == 0};
  VECTOR_PUSH(&draft->ranks, known);
}

struct dump_reading {
  struct import *import;
  struct draft *draft;
  const struct input *input;
};

static int add_dump(void *user, const struct value *root, char *why, size_t why_bytes) {
  const struct dump_reading *reading = user;
  struct draft *draft = reading->draft;
  const struct input *input = reading->input;
  SCOPED dump_groups groups = {0};
  int error = check(root, why, why_bytes);
  if (error)
    return error;
  if (dump_groups_read(draft, root, &groups) < 0) {
    snprintf(why, why_bytes, "has groups of more members than any job");
    return -E2BIG;
  }
  u32 rank = rank_of_dump(draft, root, input->name, &groups), first = draft->calls.n;
  if (rank == INDEX_NONE) {
    snprintf(why, why_bytes,
             "is of an unknown rank: neither its name nor its groups give it, or that rank was "
             "already read");
    return -EBADMSG;
  }
  read_version(reading->import, draft, root, input->name);
  dump_entries_read(draft, root, rank, &groups);
  dump_progress_read(draft, root, rank, &groups);
  add_rank(draft, input, rank, first);
  return 0;
}

/* What is left out, as what is too large for its budget, may have added something before that
 * shows: groups, for example, whose members are ranks. */
static int read_dump(struct import *import, struct draft *draft, const struct input *input) {
  u32 ranks = draft->ranks.n, calls = draft->calls.n, progress = draft->progress.n;
  u32 groups = draft->groups.n;
  struct dump_reading reading = {import, draft, input};
  int error = input_use_values(import, input, BUDGET_MEMORY, add_dump, &reading);
  if (error) {
    draft->ranks.n = ranks;
    draft->calls.n = calls;
    draft->progress.n = progress;
    dump_groups_cut(draft, groups);
  }
  return error;
}

ORDER_BY(by_rank, struct flight_rank, UP(rank) DOWN(seen))

/* Members of groups are ranks too, even if they left no dump. */
static void complete_ranks(struct draft *draft) {
  FOR_EACH(draft->groups.at, draft->groups.n, group)
    FOR_EACH(group->members, group->n_members, member) {
      struct flight_rank absent = {
          .rank = *member, .first_created = NS_UNKNOWN, .last_seen = NS_UNKNOWN};
      VECTOR_PUSH(&draft->ranks, absent);
    }
  SORT(draft->ranks.at, draft->ranks.n, by_rank);
  draft->ranks.n = KEEP_FIRST(draft->ranks.at, draft->ranks.n, last, one, last->rank == one->rank);
}

/* The text before the rank in file names is a host only if it differs between ranks. */
static void drop_common_hosts(struct draft *draft) {
  const char *first = NULL;
  bool differ = false;
  FOR_EACH(draft->ranks.at, draft->ranks.n, one) {
    const char *host = one->host;
    first = first ? first : host;
    differ |= host && first && strcmp(host, first) != 0;
  }
  for (u32 i = 0; i < draft->ranks.n && !differ; i++)
    draft->ranks.at[i].host = NULL;
}

static u32 rank_index(const struct flight_record *flight, u32 rank) {
  return FIRST_NOT(0, flight->n_ranks, i, flight->ranks[i].rank < rank);
}

/* Members that no pg_config lists: all that made a call in the group. */
static void collect_members(struct flight_record *flight, u32 group, struct arena *arena) {
  struct flight_group *g = &flight->groups[group];
  SCOPED VECTOR(u32) seen = {0};
  FOR_EACH(flight->calls, flight->n_calls, one)
    if (one->group == group && (!seen.n || seen.at[seen.n - 1] != one->rank))
      VECTOR_PUSH(&seen, one->rank);
  g->n_members = seen.n;
  g->members = VECTOR_KEPT(&seen, arena);
}

static void fill_groups(struct flight_record *flight, struct draft *draft) {
  flight->n_groups = draft->groups.n;
  flight->groups = VECTOR_KEPT(&draft->groups, draft->arena);
  for (u32 g = 0; g < flight->n_groups; g++) {
    struct flight_group *group = &flight->groups[g];
    group->members_known = group->n_members != 0;
    FOR_EACH_CHANGED(group->members, group->n_members, member)
      *member = rank_index(flight, *member);
    if (!group->members_known)
      collect_members(flight, g, draft->arena);
  }
}

static void fill_calls(struct flight_record *flight, struct draft *draft) {
  flight->calls = arena_array(draft->arena, draft->calls.n, sizeof(*flight->calls));
  for (u32 r = 0; r < flight->n_ranks; r++) {
    struct flight_rank *rank = &flight->ranks[r];
    u32 from = rank->first_call;
    rank->first_call = flight->n_calls;
    for (u32 i = 0; i < rank->n_calls; i++) {
      struct flight_call *call = &flight->calls[flight->n_calls++];
      *call = draft->calls.at[from + i];
      call->rank = r;
    }
  }
}

/* Peers are ranks of the group until the group's members are known. */
static void find_peers(struct flight_record *flight) {
  FOR_EACH_CHANGED(flight->calls, flight->n_calls, call) {
    const struct flight_group *group = &flight->groups[call->group];
    bool known = group->members_known && call->peer < group->n_members;
    call->peer = known ? group->members[call->peer] : INDEX_NONE;
  }
}

ORDER_BY(by_group_and_rank, struct flight_progress, UP(group) UP(rank))

static void fill_progress(struct flight_record *flight, struct draft *draft) {
  u32 n = flight->n_progress = draft->progress.n;
  flight->progress = VECTOR_KEPT(&draft->progress, draft->arena);
  FOR_EACH_CHANGED(flight->progress, n, one)
    one->rank = rank_index(flight, one->rank);
  SORT(flight->progress, n, by_group_and_rank);
}

static void assemble(struct flight_record *flight, struct draft *draft) {
  drop_common_hosts(draft);
  complete_ranks(draft);
  *flight = (struct flight_record){.source = "flight-recorder dumps",
                                   .version = draft->version,
                                   .n_ranks = draft->ranks.n,
                                   .end = NS_UNKNOWN};
  flight->ranks = VECTOR_KEPT(&draft->ranks, draft->arena);
  fill_calls(flight, draft);
  fill_groups(flight, draft);
  fill_progress(flight, draft);
  find_peers(flight);
}

int load_flight(struct import *import, const struct input *inputs, u32 n) {
  struct draft draft = {.arena = import->arena, .texts = {.arena = import->arena}};
  struct flight_record *flight = arena_alloc(import->arena, sizeof(*flight));
  int error = READ_EACH(inputs, n, input, read_dump(import, &draft, input));
  if (!error) {
    assemble(flight, &draft);
    import->model->flight = flight;
  }
  FREE_EACH(&draft, groups.at, stacks.at, calls.at, progress.at, ranks.at, groups.index.slots,
            stacks.index.slots);
  value_builder_release(&draft.texts);
  return error;
}
