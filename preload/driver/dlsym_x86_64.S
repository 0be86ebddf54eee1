/* SPDX-License-Identifier: MIT
 *
 * dlsym(). What RTLD_NEXT means depends on who calls, which the C library reads from the return
 * address: so the real function is jumped to, never called, for every look-up but the few that
 * tscope_dlsym_instead() answers itself. It is asked only about names that begin with the first two
 * letters of a registry's: cu (the driver, the CUDA runtime, cuBLAS, CUPTI), nc and pn (NCCL) and
 * __ (of the CUDA runtime).
 */
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  movq tscope_dlsym_real(%rip), %r11
  testq %r11, %r11
  jz 1f
  testq %rsi, %rsi
  jz 2f
  cmpb $0, (%rsi)
  je 2f
  movzwl (%rsi), %eax
  cmpl $0x7563, %eax /* "cu" */
  je 1f
  cmpl $0x636e, %eax /* "nc" */
  je 1f
  cmpl $0x6e70, %eax /* "pn" */
  je 1f
  cmpl $0x5f5f, %eax /* "__" */
  jne 2f
1:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call tscope_dlsym_instead
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jnz 3f
  movq tscope_dlsym_real(%rip), %r11
  testq %r11, %r11
  jz 4f
2:
  jmpq *%r11
3:
  movq %rdx, %rax
4:
  ret
  .cfi_endproc
  .size dlsym, . - dlsym

  .section .note.GNU-stack, "", @progbits
