/* SPDX-License-Identifier: MIT */
#include "import/file_budget.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

static const struct {
  u64 base, each;
  const char *what;
} kinds[] = {
#define B(NAME, base, each, what) {base, each, what},
    TSCOPE_BUDGETS(B)
#undef B
};

static _Thread_local struct budget *current;

static u64 limit_of(enum budget_kind kind, u64 bytes) {
  return size_sum(kinds[kind].base, size_product(kinds[kind].each, bytes));
}

/* The memory of values is that of a file, with another multiple. Neither is more than most of what
 * the machine has. */
static u64 memory_of(enum budget_kind kind, u64 bytes) {
  u64 wanted = limit_of(kind, bytes);
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  u64 machine = pages > 0 && page > 0 ? (u64)pages / 4 * 3 * (u64)page : UINT64_MAX;
  return MIN(wanted, machine);
}

void budget_begin(struct budget *budget, enum budget_kind memory, u64 bytes) {
  *budget = (struct budget){
      .before = current, .bytes = bytes, .memory_kind = memory, .over = BUDGET_KINDS};
  for (unsigned kind = 0; kind < BUDGET_KINDS; kind++)
    budget->left[kind] = limit_of(kind, bytes);
  budget->memory.most = memory_of(memory, bytes);
  budget->memory_before = memory_account_set(&budget->memory);
  current = budget;
}

int budget_end(struct budget *budget, int error, char *why, size_t why_bytes) {
  budget_is_over();
  current = budget->before;
  memory_account_set(budget->memory_before);
  memory_count(budget->memory.taken);
  if (budget->over == BUDGET_KINDS)
    return error;
  snprintf(why, why_bytes,
           "would take more than %llu %s for a file of %llu bytes: it is damaged, or made to do "
           "harm",
           (unsigned long long)(budget->over == budget->memory_kind
                                    ? budget->memory.most
                                    : limit_of(budget->over, budget->bytes)),
           kinds[budget->over].what, (unsigned long long)budget->bytes);
  return -EFBIG;
}

bool budget_take(enum budget_kind kind, u64 amount) {
  if (!current)
    return true;
  if (amount > current->left[kind]) {
    current->left[kind] = 0;
    if (current->over == BUDGET_KINDS)
      current->over = kind;
    return false;
  }
  current->left[kind] -= amount;
  return true;
}

bool budget_is_over(void) {
  if (!current)
    return false;
  if (current->memory.taken > current->memory.most && current->over == BUDGET_KINDS)
    current->over = current->memory_kind;
  return current->over != BUDGET_KINDS;
}

bool budget_inflate(u64 bytes) {
  if (!budget_take(BUDGET_INFLATED, bytes))
    return false;
  if (current)
    current->memory.most = memory_of(
        current->memory_kind, size_sum(current->bytes, limit_of(BUDGET_INFLATED, current->bytes) -
                                                           current->left[BUDGET_INFLATED]));
  return true;
}

/* The parser gives up by itself where there is no memory; so it is told that there is none. */
static void *allocate_for_json(size_t bytes) {
  return budget_is_over() ? NULL : memory_array(bytes, 1);
}

void budget_covers_json(void) {
  json_set_alloc_funcs(allocate_for_json, free);
}
