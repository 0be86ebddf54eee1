/* SPDX-License-Identifier: MIT
 *
 * dlsym() for aarch64; dlsym_x86_64.S says why it is what it is.
 */
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint #34 /* bti c */
  adrp x16, tscope_dlsym_real
  ldr x16, [x16, #:lo12:tscope_dlsym_real]
  cbz x16, 1f
  cbz x1, 2f
  ldrb w9, [x1]
  cbz w9, 2f
  ldrb w10, [x1, #1]
  orr w9, w9, w10, lsl #8
  mov w10, #0x7563 /* "cu" */
  cmp w9, w10
  b.eq 1f
  mov w10, #0x636e /* "nc" */
  cmp w9, w10
  b.eq 1f
  mov w10, #0x6e70 /* "pn" */
  cmp w9, w10
  b.eq 1f
  mov w10, #0x5f5f /* "__" */
  cmp w9, w10
  b.ne 2f
1:
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x29, sp
  stp x0, x1, [sp, #16]
  bl tscope_dlsym_instead
  mov x9, x0
  mov x10, x1
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  cbnz x9, 3f
  adrp x16, tscope_dlsym_real
  ldr x16, [x16, #:lo12:tscope_dlsym_real]
  cbz x16, 4f
2:
  br x16
3:
  mov x0, x10
  ret
4:
  mov x0, #0
  ret
  .cfi_endproc
  .size dlsym, . - dlsym

#if defined(__ARM_FEATURE_BTI_DEFAULT) || defined(__ARM_FEATURE_PAC_DEFAULT)
  /* That branch targets are marked, as the compiler says of its own objects. */
  .section .note.gnu.property, "a"
  .balign 8
  .word 4, 16, 5 /* bytes of the name and of what follows it, NT_GNU_PROPERTY_TYPE_0 */
  .asciz "GNU"
  .word 0xc0000000, 4, 3, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI, PAC */
#endif

  .section .note.GNU-stack, "", %progbits
