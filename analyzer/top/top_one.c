/* SPDX-License-Identifier: MIT
 *
 * One rank, with all that is known of it.
 */
#include <stdio.h>

#include "top/top_page.h"

static void put_row(struct pen *pen, const char *name, const char *text) {
  pen_left(pen, STYLE_DIM, name, 18);
  pen_hang(pen, 18);
  pen_words(pen, STYLE_PLAIN, text);
  pen_newline(pen);
}

static void put_known(struct pen *pen, const char *name, double value,
                      struct quantity (*format)(double)) {
  struct quantity room;
  put_row(pen, name, top_format_known(value, format, &room));
}

static void put_comms(struct live_view *view, const struct live_rank *rank, struct pen *pen) {
  for (u32 c = 0; c < rank->process->comms.n; c++) {
    const struct live_comm *comm = &rank->process->comms.at[c];
    const char *name = live_group_name(view, &rank->process->called.comms[c]);
    char text[160];
    if (comm->newest == INDEX_NONE)
      snprintf(text, sizeof(text), "%.80s: nothing called yet", name);
    else
      snprintf(text, sizeof(text), "%.80s: up to %u%s", name, comm->newest,
               comm->ended ? ", ended" : "");
    put_row(pen, c == 0 ? "collectives of" : "", text);
  }
}

void top_one(const struct top_page *page, struct live_view *view, struct pen *pen) {
  const struct live_rank *rank = FIND(view->ranks, view->n_ranks, one, one->rank == page->chosen);
  char text[256], room[96];
  enum style style;
  if (!rank) {
    pen_end_line(pen, STYLE_NOTE, "This rank is gone. Enter goes back.");
    return;
  }
  const struct live_process *process = rank->process;
  snprintf(text, sizeof(text), "rank %u", rank->rank);
  pen_put(pen, STYLE_BOLD, text);
  pen_format(pen, STYLE_PLAIN, "  process %u on %s  ", process->trace.file.header.pid,
             view->hosts[rank->host].name);
  pen_end_line(pen, STYLE_DIM, "Enter goes back");
  put_row(pen, "state", rank->what[0] ? rank->what : live_state_name(rank->state));
  put_row(pen, "doing", top_describe_activity(rank, view->threshold_s, room, sizeof(room), &style));
  put_known(pen, "last sign of life", rank->silent_s, duration_s);
  put_known(pen, "last record", rank->quiet_s, duration_s);
  put_known(pen, "last step", rank->step_s, duration_s);
  put_known(pen, "usual step", rank->usual_s, duration_s);
  pen_left(pen, STYLE_DIM, "recent steps", 18);
  top_sparkline(pen, &rank->steps, pen->width > 20 ? pen->width - 20 : 8);
  pen_newline(pen);
  put_row(pen, "late", top_format_lateness(rank->late_s).text);
  if (rank->late_at) {
    snprintf(text, sizeof(text), "%s, %s a step longer than its peers", rank->late_at,
             duration_s(rank->late_more_s).text);
    put_row(pen, "late because of", text);
  } else if (rank->late_why) {
    put_row(pen, "late because of", rank->late_why);
  }
  if (rank->op)
    snprintf(text, sizeof(text), "%s, called %s ago%s",
             call_name(&view->arena, rank->op, process->last.seq, rank->group),
             duration_s(rank->called_s).text, rank->in_call ? ", not returned" : "");
  put_row(pen, "last collective", rank->op ? text : "-");
  put_known(pen, "host waits for", rank->in_wait_s, duration_s);
  if (rank->stalled_in) {
    put_row(pen, "stalled in", rank->stalled_in);
    put_known(pen, "", rank->stalled_s, duration_s);
  }
  put_comms(view, rank, pen);
  put_known(pen, "GPU, kernels", rank->gpu, percent);
  put_known(pen, "memory", rank->memory, memory_size);
  put_known(pen, "memory, peak", rank->peak, memory_size);
  put_known(pen, "memory, reserved", rank->reserved, memory_size);
  put_known(pen, "memory of GPU", rank->gpu_memory, memory_size);
  put_known(pen, "records", (double)process->records, count_of);
  put_known(pen, "overwritten", (double)rank->overwritten, count_of);
  put_known(pen, "lost", (double)rank->lost, count_of);
  const char *failed = live_string(process, process->failed_call);
  if (failed) {
    snprintf(text, sizeof(text), "%s: %d", failed, process->failed_result);
    put_row(pen, "failed call", text);
  }
  if (process->trace.file.header.exception_ticks)
    put_row(pen, "exception", process->trace.file.header.exception);
}
