/* SPDX-License-Identifier: MIT
 *
 * dlclose(), see unloading.h. In assembler, since C files mean the C library's by this name
 * (glibc_compat.h).
 */
  .text
  .globl dlclose
  .type dlclose, %function
dlclose:
  .cfi_startproc
#if defined(__aarch64__)
  hint #34 /* bti c */
  b tscope_hook_dlclose
#else
  endbr64
  jmp tscope_hook_dlclose
#endif
  .cfi_endproc
  .size dlclose, . - dlclose

#if defined(__ARM_FEATURE_BTI_DEFAULT) || defined(__ARM_FEATURE_PAC_DEFAULT)
  .section .note.gnu.property, "a"
  .balign 8
  .word 4, 16, 5 /* as in dlsym_aarch64.S */
  .asciz "GNU"
  .word 0xc0000000, 4, 3, 0
#endif

  .section .note.GNU-stack, "", %progbits
