/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of fused attention, as far as a launch shows it.
 */
#ifndef TSCOPE_ATTENTION_H
#define TSCOPE_ATTENTION_H

#include "format/tscope_format.h"

/* An estimate of the operations of one launch of FlashAttention 2, mangled or not, from its
 * template arguments and its grid; NAN for every other kernel and for NULL. The grid is (blocks of
 * the sequence, batch, heads), and the template gives the length of a block
 * (csrc/flash_attn/src/flash_fwd_launch_template.h, flash_bwd_launch_template.h). Forward is two
 * GEMMs of sequence x sequence x head size per head, backward is five, and a causal mask leaves out
 * half. It is assumed that there are as many queries as keys (self-attention) and that blocks are
 * full. So it is an upper bound if sequences have different lengths, if the last block is not full,
 * or if attention is local. */
double kernel_attention_flops(const char *name, const u32 grid[3]);

#endif
