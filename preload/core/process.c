/* SPDX-License-Identifier: MIT */
#include "hook.h"
#include <stdarg.h>

static struct tscope_live dormant;
struct tscope_live *tscope_live = &dormant;
__thread struct tscope_thread *tscope_self __attribute__((tls_model("initial-exec")));
bool tscope_ticks_are_monotonic_clock;

u64 tscope_ticks_slow(void) {
  return 0;
}
struct tscope_thread *tscope_enter_slow(enum tscope_wake wake, const void *frame) {
  (void)wake, (void)frame;
  return NULL;
}
void *tscope_reserve_slow(struct tscope_thread *thread, struct tscope_writer *writer, u64 units,
                          u8 type, u16 tag, u32 bytes) {
  (void)thread, (void)writer, (void)units, (void)type, (void)tag, (void)bytes;
  return NULL;
}
u64 *tscope_span_open(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                      u32 bytes) {
  (void)thread, (void)start, (void)type, (void)tag, (void)record, (void)bytes;
  return NULL;
}
bool tscope_spine(struct tscope_thread *thread, u64 start, u8 type, u16 tag, void *record,
                  u32 bytes) {
  (void)thread, (void)start, (void)type, (void)tag, (void)record, (void)bytes;
  return false;
}
u32 tscope_string(struct tscope_thread *thread, const char *text) {
  (void)thread, (void)text;
  return 0;
}
u32 tscope_string_n(struct tscope_thread *thread, const char *text, size_t bytes) {
  (void)thread, (void)text, (void)bytes;
  return 0;
}
void tscope_info(struct tscope_thread *thread, enum tscope_info key, const char *value,
                 const char *detail) {
  (void)thread, (void)key, (void)value, (void)detail;
}
void *tscope_resolve_slow(struct tscope_symbol *symbol, const void *return_address) {
  (void)symbol, (void)return_address;
  return NULL;
}
void tscope_lose(enum tscope_loss reason, u64 records) {
  (void)reason, (void)records;
}
void tscope_turn_off(const char *why) {
  (void)why;
}
void tscope_say(int level, const char *format, ...) {
  (void)level, (void)format;
}
