/* SPDX-License-Identifier: MIT
 *
 * What a kernel's name says about communication between ranks: communication.def has the names.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"
#include "kernels/communication.def"

enum comm_library {
#define L(ID, name) COMM_LIBRARY_##ID,
  TSCOPE_COMM_LIBRARIES(L)
#undef L
      COMM_LIBRARIES
};

/* Further values of what enum tscope_op says. */
enum comm_op {
  COMM_OP_NCCL = 0, /* an operation of NCCL's own; the name may not tell which */
  COMM_OP_NONE,     /* only in communication.def: the kernel does not communicate */
  COMM_OPS_BEGIN = 32,
#define O(ID, LIBRARY, PART, like, name) COMM_OP_##ID,
  TSCOPE_COMM_OPS(O)
#undef O
      COMM_OPS /* above every operation's number */
};

enum comm_part {
#define T(ID, name, what) COMM_PART_##ID,
  TSCOPE_COMM_PARTS(T)
#undef T
};

struct communication {
  u8 library; /* enum comm_library; COMM_LIBRARY_NONE: the kernel does not communicate */
  u8 op;      /* enum tscope_op or enum comm_op; 0 if the name does not tell */
};

/* Of a GPU kernel, mangled or not. Takes tens of microseconds: ask once per name. */
struct communication communication_of_kernel(const char *name);

/* The same of names that kernel_demangle() and kernel_strip() made. */
struct communication communication_of_demangled(const char *demangled, const char *stripped);

const char *comm_library_name(u8 library);

/* Of an operation, NCCL's or another library's. */
const char *comm_op_name(u8 op); /* NULL for a number that none has */
const char *op_name(u8 op);      /* or "unknown" */
u8 comm_op_library(u8 op);
u8 comm_op_part(u8 op);

/* The operation of NCCL whose members wait for each other in the same way: itself if it is NCCL's.
 * 0 if the members do not wait until all others are there. */
u8 comm_op_like(u8 op);

/* A send or a receive. */
bool op_is_message(u8 op);

/* Collectives in which no member can finish before all have started. */
bool op_is_barrier_like(u8 op);

/* The operation that words such as "allreduce", "_allgather_base", "nccl:all_to_all" mean; 0 if it
 * can be any. */
u8 op_named(const char *name);

/* What an operation's kernel is called after: NCCL runs all-to-all, gather and scatter as sends and
 * receives. */
u8 kernel_op(u8 op);

/* The same of a kernel's or a transport's name. */
u8 op_of_name(const char *name);
