/* SPDX-License-Identifier: MIT
 *
 * What is known of the job's own CUPTI client, such as torch.profiler, from the calls it makes.
 */
#ifndef TSCOPE_CUPTI_CLIENTS_H
#define TSCOPE_CUPTI_CLIENTS_H

#include "gpu/cupti_hooks.def"
#include "gpu/cupti_library.h"
#include "record/hook.h"

#define HOOK(name_, since, type, params, args, failure, recorder, what) CUPTI_##name_,
enum cupti_symbol { TSCOPE_CUPTI_HOOKS(HOOK) };
#undef HOOK

/* The library's functions behind the wrappers, by enum cupti_symbol. */
extern struct tscope_symbol cupti_symbols[];

/* Why CUPTI cannot be used now; NULL if no client is at work with it. */
const char *cupti_client_at_work(void);

/* Whether a client has come and gone since cupti_client_taken_note_of() was called last. A client
 * is gone when it has disabled all it enabled, and has collected its records or not called CUPTI
 * for two seconds. */
bool cupti_client_has_left(void);
void cupti_client_taken_note_of(void);

/* Puts back what the client set, where tscope's source had its own: callbacks and settings. What it
 * never set becomes what it is without tscope; the clock was never touched. */
void cupti_client_restore(const struct cupti *cupti);

/* Hands the client, if there is one, what CUPTI still has for it. */
void cupti_client_collect(const struct cupti *cupti);

/* Hands a buffer of the client's back, with nothing in it: CUPTI gave it to tscope. */
void cupti_client_give_back(void *context, uint32_t stream, uint8_t *buffer, size_t size);

/* Whether the client wants records of this kind, which are then not to be disabled. */
bool cupti_client_wants(int kind);

/* Whether tscope's source, while it is open, has records of this kind. */
bool cupti_source_wants(int kind);

#endif
