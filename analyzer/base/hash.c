/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <sys/random.h>

u64 table_hash_keys[2] = {HASH_SEED, 0x9e3779b97f4a7c15ull};

__attribute__((constructor)) static void choose_keys(void) {
  u64 random[2];
  if (getrandom(random, sizeof(random), GRND_NONBLOCK) == sizeof(random)) {
    table_hash_keys[0] = random[0];
    table_hash_keys[1] = random[1] | 1;
  }
}
