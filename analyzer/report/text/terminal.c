/* SPDX-License-Identifier: MIT */
#include "report/text/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static unsigned clamp_width(unsigned width) {
  if (width < REPORT_MIN_WIDTH)
    return REPORT_MIN_WIDTH;
  return width > REPORT_MAX_WIDTH ? REPORT_MAX_WIDTH : width;
}

static unsigned find_width(const struct options *options, int fd) {
  if (options->width)
    return options->width;
  const char *columns = getenv("COLUMNS");
  long width = columns ? strtol(columns, NULL, 10) : 0;
  if (width > 0)
    return clamp_width(width > REPORT_MAX_WIDTH ? REPORT_MAX_WIDTH : (unsigned)width);
  struct winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return clamp_width(size.ws_col);
  return REPORT_DEFAULT_WIDTH;
}

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

/* no-color.org: NO_COLOR, when not empty, says no; FORCE_COLOR says yes unless it is 0. Where both
 * are set, plain text is the one that no reader is hurt by. */
static bool find_color(const struct options *options, int fd) {
  if (options->color != COLOR_AUTO)
    return options->color == COLOR_ALWAYS;
  if (is_set("NO_COLOR"))
    return false;
  if (is_set("FORCE_COLOR"))
    return strcmp(getenv("FORCE_COLOR"), "0") != 0;
  const char *terminal = getenv("TERM");
  return isatty(fd) && terminal && strcmp(terminal, "dumb") != 0;
}

void terminal_look(const struct options *options, int fd, struct report_view *view) {
  view->width = find_width(options, fd);
  view->color = find_color(options, fd);
  view->utf8 = !options->ascii && strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
