/* SPDX-License-Identifier: MIT */
#include "import/value_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vector.h"

/* Beyond these, what is read is taken to be content rather than a word that comes again. */
#define TEXT_WORTH_KEEPING_ONCE 1024u
#define KEYS_WORTH_KEEPING_ONCE 32u

/* What equals the `bytes` at `what`, or NULL. */
static const void *find_kept(const value_table *table, u64 hash, const void *what, u32 n,
                             size_t bytes) {
  u32 i = HASHED_INDEX(table, hash, one, one->n == n && memcmp(one->at, what, bytes) == 0);
  return i == INDEX_NONE ? NULL : table->at[i].at;
}

void value_make_text(struct value_builder *b, enum value_kind kind, const char *text, u32 bytes,
                     struct value *out) {
  bool small = bytes <= TEXT_WORTH_KEEPING_ONCE;
  u64 hash = small ? table_hash(0, text, bytes) : 0;
  const char *kept = small ? find_kept(&b->texts, hash, text, bytes, bytes) : NULL;
  if (!kept) {
    kept = arena_copy(b->arena, text, bytes);
    if (small)
      HASHED_ADD(&b->texts, hash, (struct value_kept){kept, bytes});
  }
  *out = (struct value){.kind = kind, .n = bytes, .text = kept};
}

void value_make_items(struct value_builder *b, enum value_kind kind, struct value *out) {
  struct value_items *items = arena_alloc(b->arena, sizeof(*items));
  *out = (struct value){.kind = kind, .items = items};
}

/* Moves an array to a place with room for `n` more. The first items come exactly, later ones leave
 * room for as many again. */
static struct value *copy_larger(struct value_builder *b, const struct value *old, u32 have,
                                 u32 room) {
  struct value *at = arena_array(b->arena, room, sizeof(*at));
  if (have)
    memcpy(at, old, have * sizeof(*at));
  return at;
}

static bool room_after(u32 have, u32 more, u32 *room) {
  u64 need = (u64)have + more;
  u64 wanted = have ? need + need / 2 : need;
  *room = wanted > UINT32_MAX ? UINT32_MAX : (u32)wanted;
  return need <= UINT32_MAX;
}

int value_append(struct value_builder *b, struct value_items *items, const struct value *more,
                 u32 n) {
  if (n == 0)
    return 0;
  if (n > items->room - items->n) {
    u32 room;
    if (!room_after(items->n, n, &room))
      return -EOVERFLOW;
    items->at = copy_larger(b, items->at, items->n, room);
    items->room = room;
  }
  memcpy(items->at + items->n, more, n * sizeof(*more));
  items->n += n;
  return 0;
}

/* The keys of n pairs as an array, kept once where that can be. */
static struct value *share_keys(struct value_builder *b, const struct value *pairs, u32 n) {
  struct value keys[KEYS_WORTH_KEEPING_ONCE];
  bool small = n <= KEYS_WORTH_KEEPING_ONCE;
  for (u32 i = 0; small && i < n; i++) {
    keys[i] = pairs[2 * (size_t)i];
    small = keys[i].kind == VALUE_STR;
  }
  u64 hash = small ? table_hash(0, keys, n * sizeof(*keys)) : 0;
  const void *kept = small ? find_kept(&b->shapes, hash, keys, n, n * sizeof(*keys)) : NULL;
  if (kept)
    return (struct value *)(uintptr_t)kept;
  struct value *own = arena_array(b->arena, n, sizeof(*own));
  for (u32 i = 0; i < n; i++)
    own[i] = pairs[2 * (size_t)i];
  if (small)
    HASHED_ADD(&b->shapes, hash, (struct value_kept){own, n});
  return own;
}

/* Room for n more pairs; keys that may be shared are copied first. */
static int dict_grow(struct value_builder *b, struct value_items *items, u32 n) {
  u32 room;
  if (!room_after(items->n, n, &room))
    return -EOVERFLOW;
  items->keys = copy_larger(b, items->keys, items->n, room);
  items->at = copy_larger(b, items->at, items->n, room);
  items->room = room;
  return 0;
}

int value_put(struct value_builder *b, struct value_items *items, const struct value *pairs,
              u32 n) {
  if (n == 0)
    return 0;
  if (items->n == 0) {
    items->keys = share_keys(b, pairs, n);
    items->at = arena_array(b->arena, n, sizeof(*items->at));
    for (u32 i = 0; i < n; i++)
      items->at[i] = pairs[2 * (size_t)i + 1];
    items->n = n;
    return 0;
  }
  if (items->n > items->room || n > items->room - items->n) {
    int error = dict_grow(b, items, n);
    if (error)
      return error;
  }
  for (u32 i = 0; i < n; i++) {
    items->keys[items->n + i] = pairs[2 * (size_t)i];
    items->at[items->n + i] = pairs[2 * (size_t)i + 1];
  }
  items->n += n;
  return 0;
}

/* A container on the way down, and where in it the walk is: items first, then keys. */
struct visit {
  struct value_items *items;
  bool dict;
  u32 next;
  u32 depth;
  double spread;
};

struct value_walk {
  VECTOR(struct visit) visits;
  u32 most;
};

#define BEING_VISITED UINT32_MAX
#define MOST_SPREAD 1e30 /* within a float */

static const struct value *next_inside(struct visit *v) {
  u32 i = v->next++;
  if (i < v->items->n)
    return &v->items->at[i];
  return v->dict && i - v->items->n < v->items->n ? &v->items->keys[i - v->items->n] : NULL;
}

/* Counts what is inside, now known, to what holds it. */
static int count(struct value_walk *walk, u32 depth, double spread) {
  if (depth + walk->visits.n > walk->most)
    return -E2BIG;
  if (walk->visits.n == 0)
    return 0;
  struct visit *holder = &walk->visits.at[walk->visits.n - 1];
  if (holder->depth <= depth)
    holder->depth = depth + 1;
  holder->spread += spread;
  return 0;
}

static int enter_value(struct value_walk *walk, const struct value *value) {
  if (value->kind < VALUE_LIST)
    return count(walk, 0, 1);
  struct value_items *items = value->items;
  if (items->depth == BEING_VISITED)
    return -ELOOP;
  if (items->depth)
    return count(walk, items->depth, (double)items->spread);
  if (walk->visits.n >= walk->most)
    return -E2BIG;
  struct visit visit = {.items = items, .dict = value->kind == VALUE_DICT, .depth = 1, .spread = 1};
  VECTOR_PUSH(&walk->visits, visit);
  items->depth = BEING_VISITED;
  return 0;
}

static int leave_items(struct value_walk *walk) {
  struct visit done = walk->visits.at[--walk->visits.n];
  done.spread = MIN(MOST_SPREAD, done.spread);
  done.items->depth = done.depth;
  done.items->spread = (float)done.spread;
  return count(walk, done.depth, done.spread);
}

int value_finish(const struct value *root, u32 most) {
  struct value_walk walk = {.most = most};
  int error = enter_value(&walk, root);
  while (!error && walk.visits.n) {
    const struct value *inside = next_inside(&walk.visits.at[walk.visits.n - 1]);
    error = inside ? enter_value(&walk, inside) : leave_items(&walk);
  }
  free(walk.visits.at);
  return error;
}

void value_builder_release(struct value_builder *b) {
  FREE_EACH(b, texts.at, texts.index.slots, shapes.at, shapes.index.slots);
  memset(&b->texts, 0, sizeof(b->texts));
  memset(&b->shapes, 0, sizeof(b->shapes));
}
