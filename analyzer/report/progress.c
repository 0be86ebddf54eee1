/* SPDX-License-Identifier: MIT */
#include "report/progress.h"
#include "base/now.h"
#include "format/values.h"

#include <unistd.h>

enum { QUIET_S = 1, PLAIN_PERIOD_S = 10 };
static const double TERMINAL_PERIOD_S = 0.1;

struct progress progress_begin(FILE *out) {
  double now = now_s();
  return (struct progress){
      .out = out, .terminal = isatty(fileno(out)), .begin_s = now, .next_s = now + QUIET_S};
}

void progress_report(void *user, const char *what, double fraction) {
  struct progress *progress = user;
  double now = now_s();
  if (now < progress->next_s)
    return;
  progress->next_s = now + (progress->terminal ? TERMINAL_PERIOD_S : PLAIN_PERIOD_S);
  progress->shown = true;
  int percent = (int)(CLAMP(fraction, 0, 1) * 100);
  if (progress->terminal)
    fprintf(progress->out, "\r\033[K%s: %d %%", what, percent);
  else
    fprintf(progress->out, "tscope-report: %s: %d %% after %.0f s\n", what, percent,
            now - progress->begin_s);
  fflush(progress->out);
}

void progress_end(struct progress *progress) {
  if (progress->shown && progress->terminal)
    fputs("\r\033[K", progress->out);
}
