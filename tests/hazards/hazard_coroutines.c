/* SPDX-License-Identifier: MIT
 *
 * A coroutine as programs make it by hand: it runs on memory that was not cleared, and what lies
 * where its first function would return to is no address. Nothing ever returns there, and no
 * unwinder goes there: unless somebody walks its stack.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hazard.h"

enum { STACK_BYTES = 256 << 10 };

static unsigned long launches;

#if defined(__x86_64__)

/* Saves the registers on this stack and takes those of another one. */
void switch_stack(void **saved, void *other);
__asm__(".text\n"
        ".type switch_stack, @function\n"
        "switch_stack:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
        "  ret\n"
        ".size switch_stack, . - switch_stack\n");

static void *caller, *coroutine;

static void body(void) {
  launch(launches);
  switch_stack(&coroutine, caller);
}

static void run(void) {
  enum { REGISTERS = 6 };
  char *memory = malloc(STACK_BYTES);
  memset(memory, 0x5a, STACK_BYTES);
  void **top = (void **)(void *)(memory + STACK_BYTES - 64); /* a multiple of 16 */
  top[-2] = (void *)body;
  switch_stack(&caller, top - 2 - REGISTERS);
  free(memory);
}

#else

static void run(void) {
  launch(launches);
}

#endif

void run_coroutine(char **arguments) {
  launches = strtoul(arguments[0], NULL, 10);
  if (arguments[1]) {
    launch(launches);
    usleep(300 * 1000);
  }
  for (int i = 0; i < 2; i++)
    run();
}
