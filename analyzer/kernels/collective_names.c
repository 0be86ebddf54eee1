/* SPDX-License-Identifier: MIT */
#include "kernels/collective_names.h"

#include <ctype.h>
#include <string.h>

/* Whether `name` has `word` in it, whatever the case and without regard to underscores. */
static bool mentions(const char *name, const char *word) {
  for (; *name; name++) {
    const char *at = name, *left = word;
    while (*left && *at && (*at == '_' || tolower((unsigned char)*at) == *left)) {
      left += *at != '_';
      at++;
    }
    if (!*left)
      return true;
  }
  return false;
}

u8 op_of_name(const char *name) {
  static const struct {
    const char *word;
    u8 op;
  } words[] = {{"sendrecv", TSCOPE_OP_SEND},
               {"alltoall", TSCOPE_OP_SEND},
               {"allreduce", TSCOPE_OP_ALLREDUCE},
               {"allgather", TSCOPE_OP_ALLGATHER},
               {"reducescatter", TSCOPE_OP_REDUCE_SCATTER},
               {"broadcast", TSCOPE_OP_BROADCAST},
               {"reduce", TSCOPE_OP_REDUCE},
               {"gather", TSCOPE_OP_SEND},
               {"scatter", TSCOPE_OP_SEND},
               {"send", TSCOPE_OP_SEND},
               {"recv", TSCOPE_OP_SEND},
               {"barrier", TSCOPE_OP_BARRIER}};
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (mentions(name, words[i].word))
      return words[i].op;
  return 0;
}

bool is_collective_kernel(const char *name) {
  return strncmp(name, "nccl", 4) == 0 || strncmp(name, "rccl", 4) == 0 ||
         strstr(name, "ncclDevKernel") || strstr(name, "ncclKernel") || strstr(name, "nccl_symk");
}
