/* SPDX-License-Identifier: MIT
 *
 * C++ functions that return a class object, such as an intrusive_ptr. Whoever calls one has room
 * for the object and says where in a register of its own: the first parameter's on x86-64, x8 on
 * aarch64 (AAPCS64, "indirect result location"), which C neither sees nor sets. In C such a
 * function takes that address as its first parameter, `result`, on both machines; on aarch64 stubs
 * move it there from x8, and back, and all other parameters by one register. So there may be seven
 * of these, of general registers; the stubs change neither the stack nor the return address.
 */
#pragma once

#include <stddef.h>

#include "record/hook.h"

#if defined(__aarch64__)

#define CLASS_STUB_BEGIN(name)                                                                     \
  ".pushsection .text\n"                                                                           \
  ".balign 4\n"                                                                                    \
  ".globl " name "\n"                                                                              \
  ".type " name ", %function\n" name ":\n"                                                         \
  ".cfi_startproc\n"                                                                               \
  "hint #34\n" /* bti c */

#define CLASS_STUB_END(name)                                                                       \
  ".cfi_endproc\n"                                                                                 \
  ".size " name ", . - " name "\n"                                                                 \
  ".popsection\n"

/* Defines `entry`, which C++ calls, in front of the C function `function`. */
#define CLASS_ENTRY(entry, function)                                                               \
  __asm__(CLASS_STUB_BEGIN(entry) "mov x7, x6\n"                                                   \
                                  "mov x6, x5\n"                                                   \
                                  "mov x5, x4\n"                                                   \
                                  "mov x4, x3\n"                                                   \
                                  "mov x3, x2\n"                                                   \
                                  "mov x2, x1\n"                                                   \
                                  "mov x1, x0\n"                                                   \
                                  "mov x0, x8\n"                                                   \
                                  "b " function "\n" CLASS_STUB_END(entry))

/* Defines the hidden C function `name`, which passes its call on to the C++ function whose address
 * the struct tscope_symbol `symbol` has. */
#define CLASS_CALL(name, symbol)                                                                   \
  __asm__(".hidden " name "\n" CLASS_STUB_BEGIN(name) "adrp x16, " symbol "+16\n"                  \
                                                      "ldr x16, [x16, #:lo12:" symbol "+16]\n"     \
                                                      "mov x8, x0\n"                               \
                                                      "mov x0, x1\n"                               \
                                                      "mov x1, x2\n"                               \
                                                      "mov x2, x3\n"                               \
                                                      "mov x3, x4\n"                               \
                                                      "mov x4, x5\n"                               \
                                                      "mov x5, x6\n"                               \
                                                      "mov x6, x7\n"                               \
                                                      "br x16\n" CLASS_STUB_END(name))
_Static_assert(offsetof(struct tscope_symbol, address) == 16, "as CLASS_CALL has it");

#endif
