/* SPDX-License-Identifier: MIT
 *
 * The lines above the table: the run, its steps, and what is wrong.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/now.h"
#include "base/rank_list.h"
#include "base/statistics.h"
#include "base/texts.h"
#include "base/trace_words.h"
#include "report/text/meter.h"
#include "top/top_page.h"

#define LEAST_DELAY_S 2.0

void top_sparkline(struct pen *pen, const struct live_steps *steps, unsigned columns) {
  u32 n = MIN(steps->n, columns);
  const double *lengths = steps->lengths + steps->n - n;
  double sorted[LIVE_STEP_ENDS];
  memcpy(sorted, lengths, n * sizeof(*sorted));
  double most = n ? SPARK_HEIGHT * median_of(sorted, n) : 0;
  for (u32 i = 0; i < n && most > 0; i++)
    meter_height(pen, STYLE_COMPUTE, lengths[i], 0, most);
}

static const char *summary(const struct live_view *view) {
  if (view->n_running)
    return "running";
  return view->n_trouble ? "not running" : "ended";
}

static void put_title(const struct top_page *page, const struct live_view *view, struct pen *pen) {
  pen_put(pen, STYLE_BOLD, "tscope top");
  pen_format(pen, STYLE_PLAIN, "  %s  ", view->run->name);
  pen_put(pen,
          view->n_running   ? STYLE_GOOD
          : view->n_trouble ? STYLE_CRITICAL
                            : STYLE_DIM,
          summary(view));
  pen_format(pen, STYLE_PLAIN, ", %s", duration_s(view->since_start_s).text);
  if (page->frozen)
    pen_format(pen, STYLE_WARNING, "  frozen for %s: press space to go on",
               duration_s(page->frozen_s).text);
  if (pen->column + 10 < pen->width) {
    pen_to(pen, pen->width - 8);
    pen_put(pen, STYLE_DIM, local_time(ns_to_s(view->now_realtime_ns), "%H:%M:%S").text);
  }
  pen_newline(pen);
}

static void put_clocks(const struct live_view *view, struct pen *pen) {
  u32 unknown = 0, by_ends = 0;
  double worst = 0;
  for (u32 h = 0; h < view->n_hosts; h++) {
    const struct live_host *host = &view->hosts[h];
    unknown += isnan(host->error_s);
    by_ends += h > 0 && !isnan(host->error_s);
    worst = isnan(host->error_s) ? worst : fmax(worst, host->error_s);
  }
  if (view->n_hosts <= 1)
    pen_item(pen, STYLE_DIM, "one clock");
  if (by_ends)
    pen_item(pen, STYLE_DIM, "clocks by ends of collectives, within %s", duration_s(worst).text);
  if (unknown)
    pen_item(pen, STYLE_NOTE, "clocks of %s not aligned", plural(unknown, "host").text);
}

/* What can be read of other hosts is as old as the file system has it. */
static void put_delay(const struct live_view *view, struct pen *pen) {
  const struct live_host *oldest =
      LARGEST(view->hosts, view->n_hosts, host, host->behind_s >= LEAST_DELAY_S, host->behind_s);
  if (oldest)
    pen_item(pen, STYLE_NOTE, "the data of %s is %s old", oldest->name,
             duration_s(oldest->behind_s).text);
}

static void put_ranks(const struct live_view *view, struct pen *pen) {
  pen_line(pen, 2);
  if (view->world > view->n_ranks)
    pen_item(pen, STYLE_WARNING, "%u of %u ranks found", view->n_ranks, view->world);
  else
    pen_item(pen, STYLE_PLAIN, "%s", plural(view->n_ranks, "rank").text);
  pen_item(pen, STYLE_PLAIN, "%s", plural(view->n_hosts, "host").text);
  if (view->run->attempt > 1)
    pen_item(pen, view->run->ranks_before == view->n_ranks ? STYLE_DIM : STYLE_WARNING,
             "start %u, the one before had %s", view->run->attempt,
             plural(view->run->ranks_before, "rank").text);
  u32 of_state[LIVE_UNCERTAIN + 1] = {0};
  FOR_EACH(view->ranks, view->n_ranks, each)
    of_state[each->state]++;
  for (u32 s = 0; s < LIVE_UNCERTAIN; s++)
    if (of_state[s])
      pen_item(pen,
               s == LIVE_RUNNING ? STYLE_GOOD
               : s == LIVE_ENDED ? STYLE_DIM
                                 : STYLE_CRITICAL,
               "%u %s", of_state[s], live_state_name(s));
  put_clocks(view, pen);
  put_delay(view, pen);
  pen_newline(pen);
}

static void put_steps(const struct live_view *view, struct pen *pen) {
  const struct live_rank *rank = view->reference;
  if (!rank) {
    pen_end_line(pen, STYLE_DIM, "steps: none yet");
    return;
  }
  if (rank->steps.counted)
    pen_format(pen, STYLE_BOLD, "step %llu  ", (unsigned long long)rank->steps.count);
  else
    pen_put(pen, STYLE_BOLD, "steps  ");
  pen_format(pen, STYLE_BOLD, "%s  %s ", rate(view->rate, "steps").text,
             duration_s(view->step_s).text);
  if (!pen->html) /* the page draws them */
    top_sparkline(pen, &rank->steps, pen->width - pen->column);
  pen_newline(pen);
}

static void put_reading(const struct live_view *view, struct pen *pen) {
  pen_line(pen, 2);
  if (view->reference) {
    pen_item(pen, STYLE_DIM, "steps by %s", view->step_method);
    pen_item(pen, STYLE_DIM, "the slowest rank's last %s ago", duration_s(view->since_step_s).text);
  }
  u64 lost = TOTAL(u64, view->lost, TSCOPE_LOSS_REASONS, one, *one) - view->lost[TSCOPE_LOSS_RING];
  u32 reason = NUMBER_OF_LARGEST(0, TSCOPE_LOSS_REASONS, i,
                                 i == TSCOPE_LOSS_RING ? 0 : (double)view->lost[i]);
  if (lost)
    pen_item(pen, STYLE_WARNING, "%s lost, most: %s", plural((double)lost, "record").text,
             loss_word(reason));
  else
    pen_item(pen, STYLE_DIM, "no records lost");
  if (view->damaged)
    pen_item(pen, STYLE_WARNING, "%s damaged", plural((double)view->damaged, "chunk").text);
  if (view->unreadable)
    pen_item(pen, STYLE_WARNING, "%s cannot be read", plural(view->unreadable, "file").text);
  if (view->left_out)
    pen_item(pen, STYLE_DIM,
             "processes left out: %s (a later one has their rank, or they have none)",
             count_of(view->left_out).text);
  if (view->numbered && view->n_ranks > 1)
    pen_item(pen, STYLE_WARNING, "ranks not known, only numbered: %s",
             count_of(view->numbered).text);
  pen_item(pen, STYLE_DIM, "read %s in %s", byte_size((double)view->run->read_bytes).text,
           duration_s(view->run->poll_s).text);
  pen_newline(pen);
}

void top_head(const struct top_page *page, struct live_view *view, struct pen *pen) {
  put_title(page, view, pen);
  put_ranks(view, pen);
  put_steps(view, pen);
  put_reading(view, pen);
}

/* "rank 1", "ranks 1, 3" */
static const char *named_ranks(struct live_view *view, const u32 *indices, u32 n) {
  u32 *ranks = arena_array(&view->arena, n, sizeof(*ranks));
  for (u32 i = 0; i < n; i++)
    ranks[i] = view->ranks[indices[i]].rank;
  return ranks_by_name(&view->arena, ranks, n, 40);
}

/* What the first of the missing ranks does instead. */
static const char *describe_instead(struct live_view *view, const struct live_wait *wait) {
  const struct live_rank *rank = wait->n_absent ? &view->ranks[wait->absent[0]] : NULL;
  struct arena *arena = &view->arena;
  if (!rank)
    return "";
  if (!live_is_running(rank))
    return arena_printf(arena, "; %s%s%s", rank->what, isnan(rank->silent_s) ? "" : ", silent for ",
                        isnan(rank->silent_s) ? "" : duration_s(rank->silent_s).text);
  if (rank->waits_s >= view->threshold_s)
    return "; it is waiting too";
  if (rank->stalled_in)
    return arena_printf(arena, "; %s", rank->stalled_in);
  if (rank->phase)
    return arena_printf(arena, "; in %s for %s", rank->phase, duration_s(rank->phase_s).text);
  return rank->op ? arena_printf(arena, "; its last call, %s, was %s ago", rank->op,
                                 duration_s(rank->called_s).text)
                  : "";
}

/* A line in the colour of warnings, followed by more words. */
__attribute__((format(printf, 3, 4))) static void put_alert(struct pen *pen, const char *words,
                                                            const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  SCOPED char *text = memory_vprintf(format, arguments);
  va_end(arguments);
  pen_put(pen, STYLE_CRITICAL, "! ");
  pen_hang(pen, 2);
  pen_words(pen, STYLE_CRITICAL, text);
  pen_words(pen, STYLE_PLAIN, words);
  pen_newline(pen);
}

/* "ranks 1, 3", "rank 1 on node1": the host where these are on one of several. */
static const char *which_ranks(struct live_view *view, const u32 *ranks, u32 n) {
  bool one_host = view->n_hosts > 1 && n &&
                  ALL(ranks, n, one, view->ranks[*one].host == view->ranks[ranks[0]].host);
  return arena_printf(&view->arena, "%s%s%s", named_ranks(view, ranks, n), one_host ? " on " : "",
                      one_host ? view->hosts[view->ranks[ranks[0]].host].name : "");
}

/* "3 ranks wait" */
static const char *those_waiting(struct live_view *view, const struct live_wait *wait) {
  return arena_printf(&view->arena, "%s %s", plural(wait->n_waiting, "rank").text,
                      wait->n_waiting == 1 ? "waits" : "wait");
}

/* One side of a message waits for the other. */
static void put_message(struct live_view *view, const struct live_wait *wait, struct pen *pen) {
  const char *words =
      arena_printf(&view->arena, ": for %s, in %s%s", duration_s(wait->since_s).text,
                   call_name(&view->arena, wait->sends ? "send" : "recv", wait->seq, wait->group),
                   describe_instead(view, wait));
  bool one = wait->n_waiting == 1;
  put_alert(pen, words, "%s %s not %s %s %s", which_ranks(view, wait->absent, wait->n_absent),
            wait->n_absent == 1 ? "has" : "have", wait->sends ? "received what" : "sent what",
            named_ranks(view, wait->waiting, wait->n_waiting),
            wait->sends ? (one ? "sends" : "send") : (one ? "waits for" : "wait for"));
}

/* "ranks 1, 3 have not come to", "rank 1 on node1 has not ended", "3 ranks wait in" */
static const char *describe_waited_for(struct live_view *view, const struct live_wait *wait) {
  return !wait->n_absent ? arena_printf(&view->arena, "%s in", those_waiting(view, wait))
                         : arena_printf(&view->arena, "%s %s not %s",
                                        which_ranks(view, wait->absent, wait->n_absent),
                                        wait->n_absent == 1 ? "has" : "have",
                                        wait->called ? "ended" : "come to");
}

static void put_wait(struct live_view *view, const struct live_wait *wait, struct pen *pen) {
  if (wait->message && wait->n_absent && wait->n_waiting) {
    put_message(view, wait, pen);
    return;
  }
  const char *words = arena_printf(
      &view->arena, ": %s%sfor %s%s", wait->n_absent ? those_waiting(view, wait) : "",
      wait->n_absent ? " " : "", duration_s(wait->since_s).text, describe_instead(view, wait));
  if (wait->no_trace)
    words = arena_printf(&view->arena, "%s; %s without a trace", words,
                         plural(wait->no_trace, "member").text);
  put_alert(pen, words, "%s %s", describe_waited_for(view, wait),
            call_name(&view->arena, wait->op ? wait->op : "call", wait->seq, wait->group));
}

static bool same_trouble(const struct live_rank *a, const struct live_rank *b) {
  return live_is_in_trouble(a) && live_is_in_trouble(b) && strcmp(a->what, b->what) == 0;
}

static void put_state(struct live_view *view, const u32 *alike, u32 n, struct pen *pen) {
  double longest = NAN;
  FOR_EACH(alike, n, one)
    longest = fmax(view->ranks[*one].silent_s, longest);
  const char *silence =
      isnan(longest) ? "" : arena_printf(&view->arena, "; silent for %s", duration_s(longest).text);
  put_alert(pen, silence, "%s: %s", which_ranks(view, alike, n), view->ranks[alike[0]].what);
}

static bool is_stalled(const struct live_view *view) {
  return view->n_running && view->since_step_s > view->threshold_s;
}

static void put_stall(struct live_view *view, struct pen *pen) {
  put_alert(pen,
            arena_printf(&view->arena, ", usually one takes %s", duration_s(view->step_s).text),
            "no step for %s", duration_s(view->since_step_s).text);
}

static void put_mismatch(struct live_view *view, const struct live_mismatch *mismatch,
                         struct pen *pen) {
  put_alert(pen, arena_printf(&view->arena, ": %s", mismatch->detail), "%s: %s", mismatch->call,
            mismatch->state);
}

static bool same_error(const struct live_rank *a, const struct live_rank *b) {
  return a->nccl_error && same_text(a->nccl_error, b->nccl_error);
}

static void put_error(struct live_view *view, const u32 *alike, u32 n, struct pen *pen) {
  put_alert(pen, "", "NCCL reports on %s: %s", which_ranks(view, alike, n),
            view->ranks[alike[0]].nccl_error);
}

/* What ranks have in common, each once; how many there are, of which `most` are written. A rank of
 * which there is nothing to say is not like itself. */
static u32 put_common(struct live_view *view, struct pen *pen, u32 most,
                      bool same(const struct live_rank *, const struct live_rank *),
                      void put(struct live_view *, const u32 *, u32, struct pen *)) {
  u32 *alike = arena_array(&view->arena, view->n_ranks, sizeof(*alike)), found = 0;
  for (u32 i = 0; i < view->n_ranks; i++) {
    const struct live_rank *ranks = view->ranks;
    bool is_first = !ANY(ranks, i, one, same(one, &ranks[i]));
    u32 n = is_first ? LIST_WHERE(alike, i, view->n_ranks, k, same(&ranks[k], &ranks[i]), k) : 0;
    if (n && found++ < most)
      put(view, alike, n, pen);
  }
  return found;
}

/* Ranks that are late because of a line; how many there are, of which `most` are written. */
static u32 put_late(struct live_view *view, struct pen *pen, u32 most) {
  u32 found = 0;
  for (u32 i = 0; i < view->n_ranks; i++) {
    const struct live_rank *rank = &view->ranks[i];
    if (!rank->late_at || found++ >= most)
      continue;
    put_alert(pen,
              arena_printf(&view->arena, ": it is %s longer than its peers at %s",
                           duration_s(rank->late_more_s).text, rank->late_at),
              "%s is late by %s a step", which_ranks(view, &i, 1), duration_s(rank->late_s).text);
  }
  return found;
}

void top_alerts(struct live_view *view, struct pen *pen, unsigned most) {
  u32 n = 0;
#define MORE (n < most ? most - n : 0)
  if (is_stalled(view) && n++ < most)
    put_stall(view, pen);
  FOR_EACH(view->waits, view->n_waits, wait)
    if (n++ < most)
      put_wait(view, wait, pen);
  FOR_EACH(view->mismatches, view->n_mismatches, mismatch)
    if (n++ < most)
      put_mismatch(view, mismatch, pen);
  n += put_common(view, pen, MORE, same_error, put_error);
  n += put_common(view, pen, MORE, same_trouble, put_state);
  n += put_late(view, pen, MORE);
#undef MORE
  if (n > most)
    put_alert(pen, "", "and %u more", n - most);
}
