/* SPDX-License-Identifier: MIT
 *
 * tscope-top: reads the traces that a job writes while it runs, and shows what it
 * does. It only reads.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/exit_status.h"
#include "base/now.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "live/live_view.h"
#include "top/top_options.h"
#include "top/top_outputs.h"
#include "top/top_screen.h"

#define PAGE_INTERVAL_S 1.0
#define HTML_INTERVAL_S 5.0
#define METRICS_INTERVAL_S 15.0

/* What goes wrong is said in one line. */
#define fail(...) print_problem("tscope-top", __VA_ARGS__)

/* A run, and what was last seen of it. */
struct watching {
  struct live_run run;
  struct live_view view;
  bool seen; /* there is a view */
  char why[512];
};

/* 0, or negative errno: -ENOENT while there is nothing to be seen. */
static int poll_job(struct watching *watching) {
  if (watching->seen)
    live_view_release(&watching->view);
  watching->seen = false;
  int error = live_run_poll(&watching->run, watching->why, sizeof(watching->why));
  if (error)
    return error;
  live_view_make(&watching->view, &watching->run);
  watching->seen = true;
  return 0;
}

static void stop_watching(struct watching *watching) {
  if (watching->seen)
    live_view_release(&watching->view);
  live_run_close(&watching->run);
}

static double interval_of(const struct top_options *options) {
  return options->interval_s   ? options->interval_s
         : options->prometheus ? METRICS_INTERVAL_S
         : options->html       ? HTML_INTERVAL_S
                               : PAGE_INTERVAL_S;
}

/* The page or the metrics; `view` is NULL while there is no run. */
static int write_file(const struct top_options *options, struct live_view *view, const char *why) {
  const char *path = options->html ? options->html : options->prometheus;
  struct output_file file;
  int error = output_file_open(&file, path);
  if (!error) {
    if (options->html)
      top_html_write(view, why, options->sort, interval_of(options), file.out);
    else
      top_metrics_write(view, file.out);
    error = output_file_close(&file, 0);
  }
  return error ? fail("cannot write %s: %s; give --%s another file", path, strerror(-error),
                      options->html ? "html" : "prometheus")
               : STATUS_OK;
}

static int print(const struct top_options *options, struct watching *watching) {
  int error = 0;
  if (options->html || options->prometheus)
    return write_file(options, &watching->view, NULL);
  if (options->format == TOP_JSON) {
    error = top_json_write(&watching->view, stdout);
  } else {
    struct top_page page = {.display = top_find_display(options, STDOUT_FILENO),
                            .sort = options->sort,
                            .chosen = TSCOPE_UNKNOWN_RANK};
    top_page_write(&page, &watching->view, stdout);
  }
  if (fflush(stdout) != 0 || error)
    return fail("the page could not be written: %s", strerror(error ? -error : errno));
  return STATUS_OK;
}

static int print_once(const struct top_options *options, struct watching *watching) {
  int error = poll_job(watching);
  return error ? fail("%s", watching->why) : print(options, watching);
}

/* JSON documents or metrics, until a signal. Where there is no run yet, one is waited for. */
static int print_until_stopped(const struct top_options *options, struct watching *watching) {
  double interval = interval_of(options);
  top_screen_catch();
  for (;;) {
    double begin = now_s();
    int error = poll_job(watching), status = STATUS_OK;
    if (error && error != -ENOENT)
      return fail("%s", watching->why);
    if (!error)
      status = print(options, watching);
    else if (options->html || options->prometheus)
      status = write_file(options, NULL, watching->why);
    if (status != STATUS_OK)
      return status;
    double left = interval - (now_s() - begin);
    if (top_screen_key(MAX(left, 0.01)) == KEY_QUIT)
      return STATUS_OK;
  }
}

static void draw(const struct top_options *options, struct top_page *page,
                 struct watching *watching) {
  SCOPED char *text = NULL;
  size_t bytes = 0;
  unsigned columns, lines;
  FILE *out = memory_stream(&text, &bytes);
  top_screen_size(&columns, &lines);
  page->display = top_find_display(options, STDOUT_FILENO);
  page->display.width = columns;
  page->height = lines;
  page->waiting = watching->seen ? NULL : watching->why;
  top_page_write(page, watching->seen ? &watching->view : NULL, out);
  memory_stream_close(out);
  top_screen_draw(text, bytes, lines);
}

/* Marks the rank so many places further in the order that is shown. */
static void move(struct top_page *page, struct live_view *view, long by) {
  u32 *order = top_order(view, page->shown);
  if (view->n_ranks == 0)
    return;
  u32 now = top_place_of_chosen(page, view, order);
  long at = now != INDEX_NONE ? (long)now : by > 0 ? -1 : 0;
  at = CLAMP(at + by, 0, (long)view->n_ranks - 1);
  page->chosen = view->ranks[order[at]].rank;
}

static void next_sort(struct top_page *page) {
  page->sort = page->sort + 1 < TOP_SORTS ? page->sort + 1 : TOP_SORT_RANK;
  page->first = 0;
}

/* In the stacks. False: the key is none for that. */
static bool scroll(int key, struct top_page *page, long screen) {
  long by = key == KEY_DOWN || key == KEY_CHARACTER + 'j' ? 1
            : key == KEY_UP || key == KEY_CHARACTER + 'k' ? -1
            : key == KEY_PAGE_DOWN                        ? screen
            : key == KEY_PAGE_UP                          ? -screen
            : key == KEY_END                              ? 1000000
            : key == KEY_HOME                             ? -1000000
                                                          : 0;
  long to = (long)page->first_line + by;
  page->first_line = (unsigned)MAX(to, 0);
  return by != 0;
}

/* False: it is to end. */
static bool handle_key(int key, struct top_page *page, struct watching *watching) {
  struct live_view *view = watching->seen ? &watching->view : NULL;
  long screen = page->height > 12 ? (long)page->height - 8 : 4;
  if (key == KEY_QUIT || key == KEY_CHARACTER + 'q' || key == KEY_CHARACTER + 'Q')
    return false;
  if (key == KEY_CHARACTER + '?' || key == KEY_CHARACTER + 'h')
    page->keys = !page->keys;
  else if (key == KEY_ESCAPE)
    page->keys = page->one = page->stacks = false;
  else if (key == KEY_CHARACTER + 't')
    page->stacks = !page->stacks;
  else if (page->stacks && !page->keys && scroll(key, page, screen))
    ;
  else if (key == KEY_CHARACTER + ' ')
    page->frozen = !page->frozen;
  else if (key == KEY_CHARACTER + 's')
    next_sort(page);
  else if (view && key == KEY_ENTER) {
    if (page->chosen == TSCOPE_UNKNOWN_RANK)
      move(page, view, 1);
    page->one = !page->one;
  } else if (view && (key == KEY_DOWN || key == KEY_UP || key == KEY_CHARACTER + 'j' ||
                      key == KEY_CHARACTER + 'k'))
    move(page, view, key == KEY_DOWN || key == KEY_CHARACTER + 'j' ? 1 : -1);
  else if (view && (key == KEY_PAGE_DOWN || key == KEY_PAGE_UP))
    move(page, view, key == KEY_PAGE_DOWN ? screen : -screen);
  else if (view && (key == KEY_HOME || key == KEY_END))
    move(page, view, key == KEY_END ? (long)view->n_ranks : -(long)view->n_ranks);
  return true;
}

static int watch(const struct top_options *options, struct watching *watching) {
  struct top_page page = {.sort = options->sort, .chosen = TSCOPE_UNKNOWN_RANK, .watched = true};
  double interval = options->interval_s ? options->interval_s : PAGE_INTERVAL_S, frozen_at = 0;
  if (!top_screen_begin())
    return fail("cannot draw on this terminal; --once prints a page");
  for (bool on = true; on;) {
    double begin = now_s();
    int error = page.frozen ? 0 : poll_job(watching);
    if (error && error != -ENOENT) {
      top_screen_end();
      return fail("%s", watching->why);
    }
    for (;;) {
      frozen_at = page.frozen ? frozen_at : now_s();
      page.frozen_s = now_s() - frozen_at;
      draw(options, &page, watching);
      double left = interval - (now_s() - begin);
      int key = top_screen_key(MAX(left, 0.01));
      bool was_frozen = page.frozen;
      if (key == KEY_NONE || !(on = handle_key(key, &page, watching)) ||
          (was_frozen && !page.frozen))
        break;
    }
  }
  top_screen_end();
  return STATUS_OK;
}

int main(int argc, char **argv) {
  struct top_options options;
  struct watching watching = {0};
  char why[512];
  setlocale(LC_CTYPE, "");
  if (!top_options_parse(argc, argv, &options, why, sizeof(why)))
    return fail("%s", why);
  if (options.help) {
    top_options_help(stdout);
    return STATUS_OK;
  }
  if (options.version) {
    puts("tscope-top " TSCOPE_VERSION);
    return STATUS_OK;
  }
  watching.run = (struct live_run){.directory = options.directory, .wanted = options.run};
  bool page = options.format == TOP_TEXT && !options.prometheus && !options.html;
  int status = options.once || (page && !terminal_draws(STDOUT_FILENO))
                   ? print_once(&options, &watching)
               : page ? watch(&options, &watching)
                      : print_until_stopped(&options, &watching);
  stop_watching(&watching);
  if (top_screen_signal()) { /* ends as whoever sent it expects */
    sigset_t all;
    signal(top_screen_signal(), SIG_DFL);
    raise(top_screen_signal());
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
  }
  return status;
}
