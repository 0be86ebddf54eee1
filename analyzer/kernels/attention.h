/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of fused attention, as far as a launch shows it.
 */
#pragma once

#include "format/tscope_format.h"

/* An estimate of the operations of one launch, mangled or not, from its template arguments and its
 * grid; NAN for kernels that do not tell, and for NULL.
 *
 * FlashAttention 2: the grid is (blocks of the sequence, batch, heads), and the template gives the
 * length of a block (csrc/flash_attn/src/flash_fwd_launch_template.h, flash_bwd_launch_template.h).
 * FlashAttention 3, backward: the grid is (blocks of keys, heads, batch); causal ones are a single
 * row of all these, and `heads` is what kernel_attention_heads() said of the launch before, which
 * prepares for them (hopper/flash_bwd_launch_template.h, tile_scheduler.hpp).
 *
 * Forward is two GEMMs of sequence x sequence x head size per head, backward is five, and a causal
 * mask leaves out half. It is assumed that there are as many queries as keys (self-attention) and
 * that blocks are full. So it is an upper bound if sequences have different lengths, if the last
 * block is not full, or if attention is local. */
double kernel_attention_flops(const char *name, const u32 grid[3], u32 heads);

/* Heads times batch, if the launch prepares a backward pass of FlashAttention 3; else 0. */
u32 kernel_attention_heads(const char *name, const u32 grid[3]);
