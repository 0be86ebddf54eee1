/* SPDX-License-Identifier: MIT */
#include "report/text/terminal.h"
#include "base/texts.h"

#include <langinfo.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* 0 if neither says. */
static unsigned found_width(int fd) {
  const char *columns = getenv("COLUMNS");
  u64 width = columns ? leading_number(columns, UINT16_MAX, NULL) : 0;
  struct winsize size;
  if (width)
    return (unsigned)width;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static unsigned find_width(int fd, unsigned least, unsigned most) {
  unsigned width = found_width(fd);
  if (!width)
    return REPORT_DEFAULT_WIDTH;
  return CLAMP(width, least, most);
}

static bool is_set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value;
}

bool terminal_draws(int fd) {
  return isatty(fd) && is_set("TERM") && strcmp(getenv("TERM"), "dumb") != 0;
}

/* Whether output has colors if no option decides. no-color.org: NO_COLOR, if not empty, says no;
 * FORCE_COLOR says yes unless it is 0. If both are set, the output is plain text, which harms no
 * reader. */
static bool wants_color(int fd) {
  if (is_set("NO_COLOR"))
    return false;
  if (is_set("FORCE_COLOR"))
    return strcmp(getenv("FORCE_COLOR"), "0") != 0;
  return terminal_draws(fd);
}

void terminal_detect(const struct terminal_wishes *wishes, unsigned least, unsigned most, int fd,
                     struct report_view *view) {
  view->width = wishes->width ? wishes->width : find_width(fd, least, most);
  view->color = wishes->color == COLOR_AUTO ? wants_color(fd) : wishes->color == COLOR_ALWAYS;
  view->links = view->color && isatty(fd);
  view->utf8 = !wishes->ascii && strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
