/* SPDX-License-Identifier: MIT */
#include "report/text/terminal.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/terminal_color.h"

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

static bool find_color(const struct options *options, int fd) {
  return options->color == COLOR_AUTO ? terminal_wants_color(fd) : options->color == COLOR_ALWAYS;
}

void terminal_detect(const struct options *options, int fd, struct report_view *view) {
  view->width = find_width(options, fd);
  view->color = find_color(options, fd);
  view->links = view->color && isatty(fd);
  view->utf8 = !options->ascii && strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
