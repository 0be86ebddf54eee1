/* SPDX-License-Identifier: MIT
 *
 * Functions of PyTorch as C++ calls them, under their names for the linker, in a library. A
 * struct that does not fit into registers is returned like a C++ class object: at the address in
 * the same hidden register.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef uintptr_t word;
enum { TORCH_WORDS = 7 };

struct torch_object {
  const void *pointer;
  word rest[3];
};

/* The arguments of the function that was called last. */
struct torch_call {
  const char *name;
  word words[TORCH_WORDS];
};
extern struct torch_call torch_last;
extern struct torch_object torch_returned;

/* The range callback that was registered: at::RecordFunctionCallback. */
struct torch_callback {
  struct torch_object (*start)(const void *range);
  void (*end)(const void *range, void *context);
  double sampling_probability;
  uint8_t scopes[10], needs[3];
};
extern struct torch_callback torch_callback;

/* Here a range is its name, and a tensor is its number of elements (of float32). */
#define TORCH_ENQUEUE                                                                              \
  "_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_" \
  "target_default_null_typeIS3_EEEE"

/* The work that gloo's allreduce queues; NULL: none. */
extern void *torch_work;

/* What c10d::Work::isCompleted() says. */
extern bool torch_done;

/* What functions that return a class object call; NULL: nothing. */
extern void (*torch_inside)(void);
