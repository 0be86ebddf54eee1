/* SPDX-License-Identifier: MIT */
#include "kernels/communication.h"

#include <ctype.h>
#include <pthread.h>
#include <regex.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "kernels/kernel_text.h"

const char *comm_library_name(u8 library) {
  static const char *const names[] = {
#define L(ID, name) name,
      TSCOPE_COMM_LIBRARIES(L)
#undef L
  };
  return names[library < COMM_LIBRARIES ? library : 0];
}

static const struct operation {
  u8 library, part, like;
  const char *name;
} operations[] = {
#define O(ID, LIBRARY, PART, like, name)                                                           \
  [COMM_OP_##ID] = {COMM_LIBRARY_##LIBRARY, COMM_PART_##PART, like, name},
    TSCOPE_COMM_OPS(O)
#undef O
#define X(NAME, value, text)                                                                       \
  [value] = {COMM_LIBRARY_NCCL, value == TSCOPE_OP_BARRIER ? COMM_PART_BARRIER : COMM_PART_DATA,   \
             value, text},
        TSCOPE_OPS(X)
#undef X
};

static const struct operation *operation(u8 op) {
  return &operations[op < COMM_OPS ? op : 0];
}

const char *comm_op_name(u8 op) {
  return operation(op)->name;
}

const char *op_name(u8 op) {
  const char *name = comm_op_name(op);
  return name ? name : "unknown";
}

u8 comm_op_library(u8 op) {
  return operation(op)->library;
}

u8 comm_op_part(u8 op) {
  return operation(op)->part;
}

u8 comm_op_like(u8 op) {
  return operation(op)->like;
}

bool op_is_message(u8 op) {
  return op == TSCOPE_OP_SEND || op == TSCOPE_OP_RECV;
}

bool op_is_barrier_like(u8 op) {
  u8 like = comm_op_like(op);
  return like == TSCOPE_OP_ALLREDUCE || like == TSCOPE_OP_ALLGATHER ||
         like == TSCOPE_OP_REDUCE_SCATTER || like == TSCOPE_OP_ALLTOALL ||
         like == TSCOPE_OP_BARRIER;
}

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

u8 op_named(const char *name) {
  static const struct word words[] = {{"alltoall", TSCOPE_OP_ALLTOALL},
                                      {"allreduce", TSCOPE_OP_ALLREDUCE},
                                      {"allgather", TSCOPE_OP_ALLGATHER},
                                      {"reducescatter", TSCOPE_OP_REDUCE_SCATTER},
                                      {"broadcast", TSCOPE_OP_BROADCAST},
                                      {"barrier", TSCOPE_OP_BARRIER},
                                      {"reduce", TSCOPE_OP_REDUCE},
                                      {"gather", TSCOPE_OP_GATHER},
                                      {"scatter", TSCOPE_OP_SCATTER},
                                      {"send", TSCOPE_OP_SEND},
                                      {"recv", TSCOPE_OP_RECV}};
  return MEANING_OF(name, words, mentions);
}

u8 kernel_op(u8 op) {
  switch (op) {
  case TSCOPE_OP_ALLTOALL:
  case TSCOPE_OP_GATHER:
  case TSCOPE_OP_SCATTER:
  case TSCOPE_OP_RECV:
    return TSCOPE_OP_SEND;
  default:
    return op;
  }
}

u8 op_of_name(const char *name) {
  return kernel_op(op_named(name));
}

static const struct row {
  u8 op;
  const char *scope, *function;
} rows[] = {
#define K(OP, scope, function) {COMM_OP_##OP, scope, function},
    TSCOPE_COMM_KERNELS(K)
#undef K
};

/* Of these `scope` is searched in the parameters. */
static const struct row by_parameters[] = {
#define K(OP, function, parameters) {COMM_OP_##OP, parameters, function},
    TSCOPE_COMM_PARAMETERS(K)
#undef K
};

enum { ROWS = LENGTH_OF(rows), BY_PARAMETERS = LENGTH_OF(by_parameters) };

static regex_t scopes[ROWS + BY_PARAMETERS], functions[ROWS + BY_PARAMETERS];

static const struct row *row_at(int i) {
  return i < ROWS ? &rows[i] : &by_parameters[i - ROWS];
}

static void compile_rows(void) {
  for (int i = 0; i < ROWS + BY_PARAMETERS; i++)
    if (regcomp(&scopes[i], row_at(i)->scope, REG_EXTENDED | REG_NOSUB) ||
        regcomp(&functions[i], row_at(i)->function, REG_EXTENDED | REG_NOSUB))
      memory_is_short(1, sizeof(regex_t)); /* a unit test compiles the table: it is right */
}

static bool matches(const regex_t *regex, const char *pattern, const char *text) {
  return !*pattern || regexec(regex, text, 0, NULL, 0) == 0;
}

static struct communication as_row_says(const struct row *row, const char *function) {
  bool nccl = row->op == COMM_OP_NCCL;
  if (row->op == COMM_OP_NONE)
    return (struct communication){0};
  return (struct communication){.library = nccl ? COMM_LIBRARY_NCCL : comm_op_library(row->op),
                                .op = nccl ? op_of_name(function) : row->op};
}

struct communication communication_of_demangled(const char *demangled, const char *stripped) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct communication found = {0};
  struct kernel_parts parts;
  SCOPED char *text = kernel_split(stripped, &parts);
  pthread_once(&once, compile_rows);
  int i = 0;
  while (i < ROWS + BY_PARAMETERS &&
         !(matches(&functions[i], row_at(i)->function, parts.function) &&
           matches(&scopes[i], row_at(i)->scope, i < ROWS ? parts.scope : demangled)))
    i++;
  if (i < ROWS + BY_PARAMETERS)
    found = as_row_says(row_at(i), parts.function);
  return found;
}

struct communication communication_of_kernel(const char *name) {
  SCOPED char *demangled = kernel_demangle(name);
  SCOPED char *stripped = kernel_strip(demangled);
  return communication_of_demangled(demangled, stripped);
}
