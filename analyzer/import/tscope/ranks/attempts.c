/* SPDX-License-Identifier: MIT
 *
 * Which processes belong to one start of the job. A launcher that restarts ranks (torchrun after a
 * failure, or when hosts come and go) starts them under the same run name.
 *
 * On one host this is certain: its clock puts starts and ends in order, and ranks of one start live
 * together. Such groups of several hosts are put together by what they say of themselves:
 * communicators of NCCL, port, numbers of ranks, the launcher's counts; and by when they ended the
 * collectives of one communicator (common_calls.h). Wall clocks of hosts can be minutes apart, so
 * they only choose between groups that all else allows.
 */

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/tscope/ranks/common_calls.h"
#include "import/tscope/ranks/processes.h"
#include "model/rank_end.h"

/* Wall clocks of hosts of one job, if nothing else is known. */
#define MOST_APART_NS 600000000000ll
#define EARLIEST (INT64_MIN + 1)

/* Names of variables that are equal in all processes of one start. */
static const char *const common_variables[] = {"MASTER_PORT", "TORCHELASTIC_RUN_ID",
                                               "SLURM_RESTART_COUNT", "SLURM_STEP_ID"};
#define COMMON LENGTH_OF(common_variables)

struct text {
  const char *at; /* NULL if not known */
  size_t length;
};

struct life {
  struct process *process;
  const char *place; /* whose clock it reads */
  struct text common[COMMON];
  struct text restarts; /* counted by the launcher of each host: may differ between hosts */
  u64 world;            /* identity of the widest communicator of NCCL; 0 if not known */
  i64 start, end;       /* on the clock of its place; last sign of life, NS_UNKNOWN in old traces */
  i64 wall_start, wall_end;
  u32 group;
  u32 place_of_rank; /* among the different ranks, in order; INDEX_NONE: its rank is not known */
};

/* Processes of one place and start. */
struct group {
  u32 first; /* a life in it */
  u32 order; /* among the groups of its place */
  u32 attempt;
  u32 ranks; /* processes whose rank is known */
  i64 end;   /* the latest of these; NS_UNKNOWN if one is */
  i64 wall_start, wall_end;
};

struct attempt_search {
  struct life *lives; /* by place, then start */
  u32 n;
  struct group *groups;
  u32 n_groups;
  u32 *attempts; /* groups, by attempt: the first of each */
  u32 n_attempts;
  u32 *taken; /* by place of rank: the last attempt that has it, + 1 */
};

const char *process_variable(const struct process *process, const char *name, size_t *length) {
  *length = 0;
  return value_among(process->events.definitions->info[TSCOPE_INFO_ENVIRONMENT], name, length);
}

static struct text variable(const struct process *process, const char *name) {
  struct text text;
  text.at = process_variable(process, name, &text.length);
  return text;
}

static bool equal_texts(const struct text *a, const struct text *b) {
  return a->length == b->length && memcmp(a->at, b->at, a->length) == 0;
}

static struct life life_of(struct process *process) {
  const struct tscope_file_header *header = &process->entry->header;
  const struct definitions *definitions = process->events.definitions;
  const char *clock = definitions->info[TSCOPE_INFO_CLOCK];
  const struct comm_definition *world = widest_comm(definitions, true);
  struct life life = {.process = process,
                      .place = clock ? clock : header->host,
                      .restarts = variable(process, "TORCHELASTIC_RESTART_COUNT"),
                      .world = world ? world->identity : 0,
                      .start = (i64)header->start_monotonic_ns,
                      .wall_start = (i64)header->start_realtime_ns};
  for (size_t i = 0; i < COMMON; i++)
    life.common[i] = variable(process, common_variables[i]);
  life.end = process_alive_until(process);
  if (life.end != NS_UNKNOWN && life.end < life.start)
    life.end = life.start;
  life.wall_end = life.wall_start + (life.end == NS_UNKNOWN ? 0 : life.end - life.start);
  return life;
}

ORDER_BY(by_place, struct life, BY_TEXT(place) UP(start) BY_TEXT(process->entry->path))

/* Whether what two processes say of themselves shows that they belong to different starts. */
static bool differ(const struct life *a, const struct life *b) {
  u32 x = a->process->entry->header.world_size, y = b->process->entry->header.world_size;
  bool different = x && y && x != y;
  for (size_t i = 0; i < COMMON && !different; i++)
    different = a->common[i].at && b->common[i].at && !equal_texts(&a->common[i], &b->common[i]);
  return different;
}

static bool equal_if_known(const struct text *a, const struct text *b) {
  return a->at && b->at && equal_texts(a, b);
}

static bool same_world(const struct life *a, const struct life *b) {
  return a->world && a->world == b->world;
}

static bool same_port(const struct life *a, const struct life *b) {
  return equal_if_known(&a->common[0], &b->common[0]);
}

static bool has_rank(const struct life *life) {
  return life->process->rank != TSCOPE_UNKNOWN_RANK;
}

static bool same_rank(const struct life *a, const struct life *b) {
  return has_rank(a) && a->process->rank == b->process->rank;
}

/* Whether a process begins another start on its host than the group before it. One that takes the
 * place of a rank while others live on belongs to theirs. So does one without a rank, which may be
 * anything. */
static bool begins_group(const struct attempt_search *s, const struct life *life, u32 number) {
  const struct group *group = &s->groups[number];
  bool repeated = false, together = false;
  for (u32 i = group->first; &s->lives[i] != life; i++) {
    if (strcmp(s->lives[i].place, life->place) != 0 || differ(&s->lives[i], life))
      return true;
    repeated |= same_rank(&s->lives[i], life);
    together |=
        same_world(&s->lives[i], life) ||
        (same_port(&s->lives[i], life) && equal_if_known(&s->lives[i].restarts, &life->restarts));
  }
  if (!has_rank(life) || !group->ranks)
    return false;
  if (group->end == NS_UNKNOWN || repeated)
    return repeated && group->end <= life->start;
  return group->end + LONGER_ALIVE_NS <= life->start && !together;
}

static void make_groups(struct attempt_search *s) {
  for (u32 i = 0; i < s->n; i++) {
    struct life *life = &s->lives[i];
    bool same_place = i && strcmp(s->lives[i - 1].place, life->place) == 0;
    if (!i || begins_group(s, life, s->n_groups - 1)) {
      u32 order = same_place ? s->groups[s->n_groups - 1].order + 1 : 0;
      s->groups[s->n_groups++] = (struct group){.first = i,
                                                .order = order,
                                                .attempt = INDEX_NONE,
                                                .end = EARLIEST,
                                                .wall_start = life->wall_start,
                                                .wall_end = life->wall_end};
    }
    struct group *group = &s->groups[life->group = s->n_groups - 1];
    group->ranks += has_rank(life);
    if (has_rank(life) && group->end != NS_UNKNOWN)
      group->end = life->end == NS_UNKNOWN ? NS_UNKNOWN : MAX(life->end, group->end);
    group->wall_end = MAX(life->wall_end, group->wall_end);
  }
}

static u32 end_of_group(const struct attempt_search *s, u32 number) {
  return number + 1 < s->n_groups ? s->groups[number + 1].first : s->n;
}

static bool same_place(const struct attempt_search *s, u32 a, u32 b) {
  return strcmp(s->lives[s->groups[a].first].place, s->lives[s->groups[b].first].place) == 0;
}

static i64 walls_apart(const struct group *a, const struct group *b) {
  return a->wall_start > b->wall_end   ? a->wall_start - b->wall_end
         : b->wall_start > a->wall_end ? b->wall_start - a->wall_end
                                       : 0;
}

/* Where neither port nor collectives tell, wall clocks must, unless it is known how many ranks
 * there are: then these may be those that the others lack. */
static bool may_be_one_start(const struct life *a, const struct life *b, i64 apart) {
  bool sized = a->process->entry->header.world_size && b->process->entry->header.world_size;
  return same_port(a, b) || sized || apart <= MOST_APART_NS;
}

static enum common_calls calls_of(const struct attempt_search *s, u32 a, u32 b) {
  return common_calls_of(&s->lives[s->groups[a].first].process->events,
                         &s->lives[s->groups[b].first].process->events);
}

/* Whether the group ended the collectives of another that is free, on the place of that one. */
static bool fits_another(const struct attempt_search *s, u32 one, u32 number) {
  return ANY_NUMBER(0, s->n_groups, g,
                    g != one && s->groups[g].attempt == INDEX_NONE && same_place(s, g, one) &&
                        calls_of(s, g, number) == CALLS_ARE_COMMON);
}

/* How well a group fits an attempt, of which `all` is the time: the less, the better; INT64_MAX if
 * it cannot belong to it. The launchers' counts need not agree: torchrun counts a restart only
 * where a rank failed. */
static i64 misfit(const struct attempt_search *s, u32 attempt, const struct group *all,
                  u32 number) {
  const i64 not_known = 1ll << 60; /* more than wall clocks can be apart, in us */
  const i64 doubtful = INT64_MAX - 1;
  const struct life *one = &s->lives[all->first], *first = &s->lives[s->groups[number].first];
  i64 apart = walls_apart(all, &s->groups[number]);
  if (differ(one, first))
    return INT64_MAX;
  for (u32 i = s->groups[number].first; i < end_of_group(s, number); i++)
    if (s->lives[i].place_of_rank != INDEX_NONE &&
        s->taken[s->lives[i].place_of_rank] == attempt + 1)
      return INT64_MAX;
  if (same_world(one, first))
    return -1;
  u32 newest = one->group;
  enum common_calls calls = calls_of(s, newest, number);
  /* Or a clock jumped: then they lived together, and nobody else fits. */
  if (calls == CALLS_ARE_OTHERS)
    return apart == 0 && !fits_another(s, newest, number) ? doubtful : INT64_MAX;
  if (calls == CALLS_ARE_COMMON)
    return apart / 1000;
  return may_be_one_start(one, first, apart) ? not_known + apart / 1000 : INT64_MAX;
}

static void add_group(struct attempt_search *s, u32 attempt, struct group *all, u32 number) {
  struct group *group = &s->groups[number];
  group->attempt = attempt;
  for (u32 i = group->first; i < end_of_group(s, number); i++)
    if (s->lives[i].place_of_rank != INDEX_NONE)
      s->taken[s->lives[i].place_of_rank] = attempt + 1;
  all->wall_start = MIN(group->wall_start, all->wall_start);
  all->wall_end = MAX(group->wall_end, all->wall_end);
}

/* Adds, of each other host, the group that fits best; of several that fit alike, the last, because
 * newer attempts are put together first. */
static void complete_attempt(struct attempt_search *s, u32 attempt, u32 newest) {
  struct group all = s->groups[newest];
  add_group(s, attempt, &all, newest);
  for (u32 g = 0, next; g < s->n_groups; g = next) {
    u32 best = INDEX_NONE;
    i64 least = INT64_MAX;
    bool own = false;
    for (next = g; next < s->n_groups && same_place(s, g, next); next++) {
      own |= next == newest;
      i64 one = s->groups[next].attempt == INDEX_NONE ? misfit(s, attempt, &all, next) : INT64_MAX;
      if (one == INT64_MAX || one > least)
        continue;
      least = one;
      best = next;
    }
    if (best != INDEX_NONE && !own)
      add_group(s, attempt, &all, best);
  }
}

static void make_attempts(struct attempt_search *s) {
  for (;; s->n_attempts++) {
    u32 newest = INDEX_NONE;
    for (u32 g = 0; g < s->n_groups; g++)
      if (s->groups[g].attempt == INDEX_NONE &&
          (newest == INDEX_NONE || s->groups[g].wall_start > s->groups[newest].wall_start))
        newest = g;
    if (newest == INDEX_NONE)
      return;
    s->attempts[s->n_attempts] = newest;
    complete_attempt(s, s->n_attempts, newest);
  }
}

static i64 restarts_of(const struct attempt_search *s, u32 attempt) {
  i64 most = -1;
  FOR_EACH(s->lives, s->n, live)
    if (s->groups[live->group].attempt == attempt && live->restarts.at) {
      i64 count = (i64)leading_number(live->restarts.at, INT64_MAX, NULL);
      most = MAX(count, most);
    }
  return most;
}

/* A host that took part in both knows; else the launcher's counts; else the wall clock. */
static bool is_before(const struct attempt_search *s, u32 a, u32 b) {
  for (u32 g = 0; g < s->n_groups; g++)
    for (u32 h = 0; h < s->n_groups; h++)
      if (s->groups[g].attempt == a && s->groups[h].attempt == b && same_place(s, g, h))
        return s->groups[g].order < s->groups[h].order;
  i64 x = restarts_of(s, a), y = restarts_of(s, b);
  if (x >= 0 && y >= 0 && x != y)
    return x < y;
  return s->groups[s->attempts[a]].wall_start < s->groups[s->attempts[b]].wall_start;
}

/* Numbers them from 1, each time the one before which no other is. */
static void number_attempts(struct attempt_search *s) {
  SCOPED u32 *number = memory_zeroed(s->n_attempts, sizeof(*number));
  for (u32 next = 1; next <= s->n_attempts; next++) {
    u32 first = INDEX_NONE;
    for (u32 a = 0; a < s->n_attempts; a++)
      if (!number[a] && (first == INDEX_NONE || is_before(s, a, first)))
        first = a;
    number[first] = next;
  }
  FOR_EACH(s->lives, s->n, live)
    live->process->attempt = number[s->groups[live->group].attempt];
}

ORDER_POINTERS_BY(by_rank, struct life, UP(process->rank))

/* Numbers the ranks that there are without gaps. */
static void place_ranks(struct attempt_search *s) {
  SCOPED struct life **sorted = memory_array(size_sum(s->n, 1), sizeof(struct life *));
  for (u32 i = 0; i < s->n; i++)
    sorted[i] = &s->lives[i];
  SORT(sorted, s->n, by_rank);
  for (u32 i = 0, place = 0; i < s->n; i++) {
    place += i && sorted[i]->process->rank != sorted[i - 1]->process->rank;
    sorted[i]->place_of_rank = has_rank(sorted[i]) ? place : INDEX_NONE;
  }
}

u32 processes_find_attempts(struct processes *processes) {
  struct attempt_search s = {.n = processes->n};
  s.lives = memory_array(size_sum(s.n, 1), sizeof(*s.lives));
  s.groups = memory_zeroed(size_sum(s.n, 1), sizeof(*s.groups));
  s.attempts = memory_zeroed(size_sum(s.n, 1), sizeof(*s.attempts));
  s.taken = memory_zeroed(size_sum(s.n, 1), sizeof(*s.taken));
  for (u32 i = 0; i < s.n; i++)
    s.lives[i] = life_of(&processes->at[i]);
  SORT(s.lives, s.n, by_place);
  place_ranks(&s);
  make_groups(&s);
  make_attempts(&s);
  number_attempts(&s);
  FREE_EACH(&s, lives, groups, attempts, taken);
  return s.n_attempts;
}
