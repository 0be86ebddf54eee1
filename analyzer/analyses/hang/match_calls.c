/* SPDX-License-Identifier: MIT
 *
 * Members of a call must agree on what it is. It is not known beforehand who is right: the version
 * that most members called counts, and the others are the odd ones out; without a majority all are
 * named.
 */
#include <string.h>

#include "analyses/hang/verdict.h"
#include "base/texts.h"

/* The sizes of one side may differ: each member may send or get its own share. */
static bool may_differ(const struct flight_call *call, u8 of_one_side) {
  return call->like == TSCOPE_OP_ALLTOALL || call->like == of_one_side;
}

#define MOST_KINDS_LISTED 4u

/* What the members of a call must agree on. */
typedef bool calls_agree(const struct flight_call *a, const struct flight_call *b);

static bool same_type(const struct flight_call *a, const struct flight_call *b) {
  return same_text(a->op, b->op);
}

static bool same_root(const struct flight_call *a, const struct flight_call *b) {
  return a->root == INDEX_NONE || b->root == INDEX_NONE || a->root == b->root;
}

static bool same_size(const struct flight_call *a, const struct flight_call *b) {
  bool in = may_differ(a, TSCOPE_OP_SCATTER) || !a->in || !b->in || same_text(a->in, b->in);
  bool out = may_differ(a, TSCOPE_OP_GATHER) || !a->out || !b->out || same_text(a->out, b->out);
  return in && out;
}

/* An element type says nothing if there are no elements. */
static bool same_dtype(const struct flight_call *a, const struct flight_call *b) {
  bool in = a->like == TSCOPE_OP_SCATTER || a->like == TSCOPE_OP_BROADCAST || !a->in_type ||
            !b->in_type || !a->in_count || !b->in_count || same_text(a->in_type, b->in_type);
  bool out = a->like == TSCOPE_OP_GATHER || !a->out_type || !b->out_type || !a->out_count ||
             !b->out_count || same_text(a->out_type, b->out_type);
  return in && out;
}

struct instance {
  struct call_index *index;
  struct matching *matching;
  const struct call_entry *entries;
  u32 n;
};

static const struct flight_call *call_of(const struct instance *i, u32 entry) {
  return &i->index->flight->calls[i->entries[entry].call];
}

static void add_mismatch(const struct instance *i, enum match_state state, u32 *ranks, u32 n_ranks,
                         bool minority, char *detail) {
  const struct flight_call *call = call_of(i, 0);
  bool pending = ANY_NUMBER(0, i->n, c, flight_call_is_pending(call_of(i, c)));
  struct mismatch mismatch = {.state = state,
                              .pending = pending,
                              .ranks = ranks,
                              .n_ranks = n_ranks,
                              .minority = minority,
                              .detail = detail,
                              SAME(call, group, seq, op)};
  VECTOR_PUSH(&i->matching->mismatches, mismatch);
}

static char *describe_call(const struct call_index *index, const struct flight_call *call,
                           enum match_state state) {
  const char *in = state == MATCH_DTYPE ? call->in_type : call->in;
  const char *out = state == MATCH_DTYPE ? call->out_type : call->out;
  if (state == MATCH_TYPE)
    return arena_text(index->arena, call->op);
  if (state == MATCH_ROOT)
    return call->root == INDEX_NONE
               ? arena_text(index->arena, "?")
               : say(index, "its root is rank %u", index->flight->ranks[call->root].rank);
  if (!in || !out) /* sends, receives and calls in place have one of them */
    return arena_text(index->arena, in ? in : out ? out : "?");
  return say(index, "%s to %s", in, out);
}

static bool all_agree(const struct instance *i, calls_agree *agree) {
  return !ANY_NUMBER(1, i->n, c, !agree(call_of(i, 0), call_of(i, c)));
}

/* "rank 0: X; ranks 1, 3: Y": who called what, if no version has a majority. */
static char *describe_versions(const struct instance *i, calls_agree *agree,
                               enum match_state state) {
  struct call_index *index = i->index;
  bool *listed = arena_array(index->arena, i->n, sizeof(bool));
  u32 *ranks = arena_array(index->arena, i->n, sizeof(u32)), kinds = 0, left = i->n;
  char *text = arena_text(index->arena, "");
  for (u32 c = 0; c < i->n && kinds < MOST_KINDS_LISTED; c++) {
    u32 n = 0;
    if (listed[c])
      continue;
    for (u32 k = c; k < i->n; k++)
      if (!listed[k] && agree(call_of(i, c), call_of(i, k))) {
        listed[k] = true;
        ranks[n++] = i->entries[k].rank;
      }
    const char *list = verdict_rank_list(index, ranks, n);
    const char *called = describe_call(index, call_of(i, c), state);
    left -= n;
    text = arena_list(index->arena, text, "; ", "%s: %s", list, called);
    kinds++;
  }
  if (left)
    text = say(index, "%s; %u more call something else", text, left);
  return text;
}

/* Adds a mismatch unless all agree. Whether there was one. */
static bool check_agreement(const struct instance *i, calls_agree *agree, enum match_state state) {
  if (all_agree(i, agree))
    return false;
  struct call_index *index = i->index;
  u32 votes, n = 0, odd = INDEX_NONE;
  u32 best = MAJORITY(i->n, a, b, agree(call_of(i, a), call_of(i, b)), votes);
  bool decided = 2 * votes > i->n;
  u32 *ranks = arena_array(index->arena, i->n, sizeof(u32));
  for (u32 c = 0; c < i->n; c++) {
    bool agrees = agree(call_of(i, best), call_of(i, c));
    if (!agrees && odd == INDEX_NONE)
      odd = c;
    if (!agrees || !decided)
      ranks[n++] = i->entries[c].rank;
  }
  if (odd ==
      INDEX_NONE) /* what members agree on with one member they need not agree on with another */
    return false;
  char *most = describe_call(index, call_of(i, best), state),
       *one = describe_call(index, call_of(i, odd), state);
  char *list = verdict_rank_list(index, ranks, n);
  char *detail = decided ? say(index, "%s: %s; the other %u: %s", list, one, votes, most)
                         : describe_versions(i, agree, state);
  add_mismatch(i, state, ranks, n, decided, detail);
  return true;
}

/* What one member's own sizes must be in a group of n: out = in x n, or in = out x n. */
static bool fits_group(const struct flight_call *call, u32 n) {
  u64 product;
  if (!call->in || !call->out || call->in_count == UINT64_MAX || call->out_count == UINT64_MAX)
    return true;
  if (call->like == TSCOPE_OP_ALLREDUCE)
    return call->in_count == call->out_count;
  if (call->like == TSCOPE_OP_ALLGATHER)
    return !__builtin_mul_overflow(call->in_count, (u64)n, &product) && product == call->out_count;
  if (call->like == TSCOPE_OP_REDUCE_SCATTER)
    return !__builtin_mul_overflow(call->out_count, (u64)n, &product) && product == call->in_count;
  return true;
}

static bool check_own_sizes(const struct instance *i) {
  struct call_index *index = i->index;
  u32 members = index->flight->groups[i->entries[0].group].n_members;
  const struct call_entry *first =
      FIND(i->entries, i->n, one, !fits_group(&index->flight->calls[one->call], members));
  if (!first)
    return false;
  const struct flight_call *odd = &index->flight->calls[first->call];
  u32 *ranks = arena_array(index->arena, i->n, sizeof(u32));
  u32 n = LIST_WHERE(ranks, 0, i->n, c, !fits_group(call_of(i, c), members), i->entries[c].rank);
  char *list = verdict_rank_list(index, ranks, n);
  add_mismatch(
      i, MATCH_SIZE, ranks, n, 2 * n < i->n,
      say(index, "%s: %s to %s do not fit a group of %u", list, odd->in, odd->out, members));
  return true;
}

/* All that is sent must be received: this is known only when every member's part is. */
static bool check_all_to_all(const struct instance *i) {
  const struct flight_record *flight = i->index->flight;
  u64 in = 0, out = 0;
  if (call_of(i, 0)->like != TSCOPE_OP_ALLTOALL ||
      i->n < flight->groups[i->entries[0].group].n_members)
    return false;
  for (u32 c = 0; c < i->n; c++) {
    const struct flight_call *call = call_of(i, c);
    if (!call->in || !call->out || call->in_count == UINT64_MAX || call->out_count == UINT64_MAX)
      return false;
    in += call->in_count;
    out += call->out_count;
  }
  if (in == out)
    return false;
  u32 *ranks = arena_array(i->index->arena, i->n, sizeof(u32));
  LIST_WHERE(ranks, 0, i->n, c, true, i->entries[c].rank);
  add_mismatch(i, MATCH_SIZE, ranks, i->n, false,
               say(i->index,
                   "members send %llu elements and expect %llu; it is not known which one is wrong",
                   (unsigned long long)in, (unsigned long long)out));
  return true;
}

struct progress {
  u32 absent, pending, done, unknown;
};

static enum call_state state_of(const struct instance *i, u32 member) {
  return call_entry_state(i->index, &i->index->members[member], i->entries[0].seq,
                          call_of(i, 0)->created);
}

static struct progress count_states(const struct instance *i) {
  struct progress p = {0};
  const u32 *first = &i->index->first_place[i->entries[0].group];
  for (u32 member = first[0]; member < first[1]; member++) {
    enum call_state state = state_of(i, member);
    p.absent += state == CALL_ABSENT;
    p.pending += state == CALL_PENDING;
    p.done += state == CALL_DONE;
    p.unknown += state == CALL_UNKNOWN || state == CALL_UNRECORDED;
  }
  return p;
}

/* The members in that state. */
static bool add_progress_mismatch(const struct instance *i, enum match_state state,
                                  enum call_state which, u32 n, const char *finding, u32 others) {
  struct call_index *index = i->index;
  const u32 *first = &index->first_place[i->entries[0].group];
  u32 *ranks = arena_array(index->arena, n, sizeof(u32));
  u32 found = LIST_WHERE(ranks, first[0], first[1], member, state_of(i, member) == which,
                         index->members[member].rank);
  char *list = verdict_rank_list(index, ranks, found);
  bool one = others == 1;
  char *detail = say(index, "%s: %s; %u %s %s", list, finding, others, one ? "other" : "others",
                     state == MATCH_STATE       ? one ? "has finished it" : "have finished it"
                     : state == MATCH_UNDECIDED ? "left no record of it"
                     : one                      ? "is in it"
                                                : "are in it");
  add_mismatch(i, state, ranks, found, 2 * found < first[1] - first[0], detail);
  return true;
}

/* Who has not called it, and who is still in it though others have finished. If one member has
 * finished and all must come, a member that seems not to have called it only has an older record.
 */
static bool check_progress(const struct instance *i) {
  struct progress p = count_states(i);
  if (p.absent && (p.pending || !p.done))
    return add_progress_mismatch(i, MATCH_MISSING, CALL_ABSENT, p.absent, "not called", p.pending);
  if (p.pending && p.done)
    return add_progress_mismatch(i, MATCH_STATE, CALL_PENDING, p.pending, "still in it", p.done);
  if (p.pending && p.unknown)
    return add_progress_mismatch(i, MATCH_UNDECIDED, CALL_PENDING, p.pending, "in it", p.unknown);
  return false;
}

static bool check_agreements(const struct instance *i) {
  return check_agreement(i, same_type, MATCH_TYPE) || check_agreement(i, same_root, MATCH_ROOT) ||
         check_agreement(i, same_size, MATCH_SIZE) || check_own_sizes(i) ||
         check_agreement(i, same_dtype, MATCH_DTYPE) || check_all_to_all(i);
}

/* The k-th entry inside the group that a closing entry represents. INDEX_NONE if there is none. */
static u32 inner_entry(const struct call_index *index, u32 closing, u32 k) {
  const struct flight_call *calls = index->flight->calls, *close = &calls[closing];
  u32 first = index->flight->ranks[close->rank].first_call, begin = closing;
  while (begin > first && calls[begin - 1].coalesced && calls[begin - 1].group == close->group &&
         calls[begin - 1].seq == close->seq)
    begin--;
  return begin + k < closing ? begin + k : INDEX_NONE;
}

/* The entries inside a coalesced group, compared one by one, as if each were a call. */
static bool check_inner_entries(const struct instance *i) {
  if (!call_of(i, 0)->closes)
    return false;
  struct call_entry *entries = arena_array(i->index->arena, i->n, sizeof(*entries));
  bool found = false;
  for (u32 k = 0; !found; k++) {
    u32 n = 0;
    FOR_EACH(i->entries, i->n, entry) {
      u32 call = inner_entry(i->index, entry->call, k);
      entries[n] = *entry;
      entries[n].call = call;
      n += call != INDEX_NONE;
    }
    if (n < i->n) /* their number differs only where the ring cut one */
      break;
    struct instance inside = {
        .index = i->index, .matching = i->matching, .entries = entries, .n = n};
    found = check_agreements(&inside);
  }
  return found;
}

static void check_call(const struct instance *i) {
  bool found = check_agreements(i) || check_inner_entries(i) || check_progress(i);
  struct matching *m = i->matching;
  m->calls++;
  u32 group = i->entries[0].group;
  if (found)
    m->mismatched_of[group]++;
  else if (i->n == i->index->flight->groups[group].n_members) {
    m->matched++;
    m->matched_of[group]++;
  }
}

/* One entry for each member: of several with one number the last counts. */
static u32 keep_last_of_member(struct call_entry *entries, u32 n) {
  u32 kept = 0;
  FOR_EACH(entries, n, item) {
    if (kept && entries[kept - 1].rank == item->rank)
      kept--;
    entries[kept++] = *item;
  }
  return kept;
}

void matching_make(struct call_index *index, struct matching *matching) {
  u32 groups = index->flight->n_groups + 1u, most = 1;
  matching->matched_of = arena_array(index->arena, groups, sizeof(u64));
  matching->mismatched_of = arena_array(index->arena, groups, sizeof(u64));
  for (u32 at = 0, n; at < index->n_entries; at += n) {
    call_entries(index, index->entries[at].group, index->entries[at].seq, &n);
    most = MAX(n, most);
  }
  struct call_entry *each = arena_array(index->arena, most, sizeof(*each));
  for (u32 at = 0, n; at < index->n_entries; at += n) {
    const struct call_entry *entries =
        call_entries(index, index->entries[at].group, index->entries[at].seq, &n);
    memcpy(each, entries, n * sizeof(*each));
    struct instance instance = {
        .index = index, .matching = matching, .entries = each, .n = keep_last_of_member(each, n)};
    check_call(&instance);
  }
}
