/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of fused attention, as far as a launch tells it.
 */
#ifndef TSCOPE_ATTENTION_H
#define TSCOPE_ATTENTION_H

#include "format/tscope_format.h"

/* An estimate of the operations of one launch of FlashAttention 2, mangled or not, by its template
 * arguments and its grid; NAN for every other kernel and for NULL.
 *
 * The grid is (blocks of the sequence, batch, heads), a block is as long as the template says
 * (csrc/flash_attn/src/flash_fwd_launch_template.h, flash_bwd_launch_template.h). Forward is two
 * GEMMs of sequence x sequence x head size per head, backward five, a causal mask leaves out
 * half. What is taken for granted: queries and keys are equally many (self-attention), and blocks
 * are full. So it is an upper bound where sequences are of different lengths, where the last block
 * is not full, or where attention is local. */
double kernel_attention_flops(const char *name, const u32 grid[3]);

#endif
