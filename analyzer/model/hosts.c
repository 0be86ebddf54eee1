/* SPDX-License-Identifier: MIT
 *
 * Which ranks ran on one host since one boot. Hosts can have equal names: then what the traces say
 * of their clocks tells them apart, as far as they say it.
 */
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/texts.h"
#include "model/building.h"

bool host_is_same(const char *name, const char *clock, const char *other_name,
                  const char *other_clock) {
  return name && other_name && same_text(name, other_name) &&
         (!clock || !other_clock || same_text(clock, other_clock));
}

const char *model_host_of(const struct model *model, const bool *ranks) {
  u32 first = INDEX_NONE;
  for (u32 r = 0; r < model->n_ranks; r++) {
    first = first == INDEX_NONE && ranks[r] ? r : first;
    if (ranks[r] && !model_same_host(model, first, r))
      return NULL;
  }
  return first != INDEX_NONE && model->n_hosts > 1 ? model->ranks[first].host : NULL;
}

void model_number_hosts(struct model *model) {
  SCOPED struct hash_index by_name = {0};
  SCOPED u32 *first = memory_array(size_sum(model->n_ranks, 1), sizeof(*first)); /* of a host */
  model->n_hosts = 0;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct rank *rank = &model->ranks[r];
    u64 hash = table_hash_text(0, rank->host);
    rank->host_number = INDEX_NONE;
    HASH_INDEX_EACH(&by_name, hash, h) {
      const struct rank *of = &model->ranks[first[h]];
      if (h < rank->host_number && host_is_same(rank->host, rank->info[TSCOPE_INFO_CLOCK], of->host,
                                                of->info[TSCOPE_INFO_CLOCK]))
        rank->host_number = h;
    }
    if (rank->host_number != INDEX_NONE || !rank->host)
      continue;
    rank->host_number = model->n_hosts++;
    first[rank->host_number] = r;
    hash_index_add(&by_name, hash, rank->host_number);
  }
  u32 alone = model->n_hosts;
  FOR_EACH_CHANGED(model->ranks, model->n_ranks, rank)
    rank->host_number = rank->host ? rank->host_number : alone++;
}
