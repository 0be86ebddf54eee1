/* SPDX-License-Identifier: MIT
 *
 * What is known about the job's own CUPTI client, such as torch.profiler, from its calls.
 */
#pragma once

#include "gpu/cupti_hooks.def"
#include "gpu/cupti_library.h"
#include "record/hook.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what) CUPTI_##name_,
enum cupti_symbol { TSCOPE_CUPTI_HOOKS(HOOK) };
#undef HOOK

/* The library's functions behind the wrappers, by enum cupti_symbol. */
extern struct tscope_symbol cupti_symbols[];

/* Why CUPTI cannot be used now; NULL if no client is using it. */
const char *cupti_client_active(void);

/* Whether a client has finished since cupti_client_clear_finished() was called last. A client has
 * finished when it has disabled all that it enabled, and has flushed its records or made no call
 * for two seconds. */
bool cupti_client_has_finished(void);
void cupti_client_clear_finished(void);

/* Restores the client's callbacks and settings where tscope's source had its own. What the client
 * never set becomes what it is without tscope; the clock was never changed. */
void cupti_client_restore(const struct cupti *cupti);

/* Flushes to the client, if there is one, what CUPTI still has for it. */
void cupti_client_flush(const struct cupti *cupti);

/* Returns a buffer of the client, empty: CUPTI gave it to tscope. */
void cupti_client_return_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t size);

/* Whether the client wants records of this kind, which are then not to be disabled. */
bool cupti_client_wants(int kind);

/* Whether tscope's source, while it is open, has records of this kind. */
bool cupti_source_wants(int kind);
