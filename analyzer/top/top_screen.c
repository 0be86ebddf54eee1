/* SPDX-License-Identifier: MIT */
#include "top/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/now.h"

/* Alternate screen, no cursor, no line wrapping; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

static struct termios before;
static bool raw, on_screen;
static volatile sig_atomic_t ended_by, resized, stopped;
static sigset_t caught, usual;
static bool catching, hung_up;

static void write_all(const char *text, size_t bytes) {
  while (bytes > 0) {
    ssize_t wrote = write(STDOUT_FILENO, text, bytes);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0 && errno == EAGAIN) {
      poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, 100);
      continue;
    }
    if (wrote <= 0) {
      hung_up = true;
      return;
    }
    text += wrote;
    bytes -= (size_t)wrote;
  }
}

static void set_up_terminal(void) {
  if (raw) {
    struct termios now = before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_all(ENTER, sizeof(ENTER) - 1);
  on_screen = true;
}

/* Only what may be done in a signal handler. */
static void restore_terminal(void) {
  if (!on_screen)
    return;
  on_screen = false;
  ssize_t wrote = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
  (void)wrote;
  if (raw)
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void note_signal(int number) {
  if (number == SIGWINCH)
    resized = 1;
  else if (number == SIGTSTP)
    stopped = 1;
  else
    ended_by = number;
}

/* A fault of our own must not leave the terminal without a cursor. */
static void restore_on_fault(int number) {
  restore_terminal();
  signal(number, SIG_DFL);
  raise(number);
}

void top_screen_catch(void) {
  static const int noted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
  sigemptyset(&caught);
  FOR_EACH(noted, LENGTH_OF(noted), one) {
    struct sigaction old, action = {.sa_handler = note_signal};
    if (*one == SIGTSTP && !on_screen)
      continue;
    sigaction(*one, NULL, &old);
    if (old.sa_handler == SIG_IGN) /* nohup, or a shell's background job: as its parent requested */
      continue;
    sigaction(*one, &action, NULL);
    sigaddset(&caught, *one);
  }
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &caught, &usual);
  catching = true;
}

bool top_screen_begin(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  raw = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0 &&
        getpgrp() == tcgetpgrp(STDIN_FILENO);
  on_screen = true;
  top_screen_catch();
  FOR_EACH(faults, LENGTH_OF(faults), fault)
    signal(*fault, restore_on_fault);
  atexit(restore_terminal);
  memory_when_short(restore_terminal);
  set_up_terminal();
  return !hung_up;
}

void top_screen_end(void) {
  restore_terminal();
}

void top_screen_size(unsigned *columns, unsigned *lines) {
  struct winsize size = {0};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  *columns = size.ws_col ? size.ws_col : 80;
  *lines = size.ws_row ? size.ws_row : 24;
}

/* All in one write, each line wiped before it is written anew: behind its last column there would
 * be that to wipe. */
void top_screen_draw(const char *text, size_t bytes, unsigned lines) {
  static const char home[] = "\033[H", wipe[] = "\033[0m\033[K", below[] = "\033[0m\r\n\033[J";
  SCOPED char *drawn = NULL;
  size_t n = 0;
  unsigned line = 0;
  FILE *out = memory_stream(&drawn, &n);
  fputs(home, out);
  for (const char *at = text, *end = text + bytes; at < end && line < lines; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t length = (size_t)((stop ? stop : end) - at);
    fprintf(out, "%s%s", line > 0 ? "\r\n" : "", wipe);
    fwrite(at, 1, length, out);
    at += length + 1;
  }
  if (line < lines)
    fputs(below, out); /* what is left of a longer page */
  memory_stream_close(out);
  write_all(drawn, n);
}

/* Ctrl-Z: the shell gets its screen back; we get ours back when the shell continues us. */
static void stop(void) {
  sigset_t only;
  restore_terminal();
  signal(SIGTSTP, SIG_DFL);
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, NULL); /* stops here */
  sigprocmask(SIG_BLOCK, &only, NULL);
  struct sigaction action = {.sa_handler = note_signal};
  sigaction(SIGTSTP, &action, NULL);
  set_up_terminal();
}

static int sequence_key(const char *text) {
  static const struct {
    const char *text;
    int key;
  } sequences[] = {{"[A", KEY_UP},   {"OA", KEY_UP},       {"[B", KEY_DOWN},
                   {"OB", KEY_DOWN}, {"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN},
                   {"[H", KEY_HOME}, {"[1~", KEY_HOME},    {"OH", KEY_HOME},
                   {"[F", KEY_END},  {"[4~", KEY_END},     {"OF", KEY_END}};
  FOR_EACH(sequences, LENGTH_OF(sequences), sequence)
    if (strcmp(text, sequence->text) == 0)
      return sequence->key;
  return *text ? KEY_NONE : KEY_ESCAPE;
}

/* What was typed and is not read yet. */
static char typed[64];
static size_t n_typed;

static void read_typed(void) {
  ssize_t got =
      n_typed < sizeof(typed) ? read(STDIN_FILENO, typed + n_typed, sizeof(typed) - n_typed) : 0;
  if (got == 0 && n_typed == 0)
    hung_up = true; /* poll() said that there is something, and it is the end */
  n_typed += got > 0 ? (size_t)got : 0;
}

/* One key of it. */
static int pop_key(void) {
  size_t length = 1;
  int key = KEY_CHARACTER + (unsigned char)typed[0];
  if (typed[0] == '\r' || typed[0] == '\n') {
    key = KEY_ENTER;
  } else if (typed[0] == '\033') {
    char sequence[8] = "";
    while (length < n_typed && length < sizeof(sequence) - 1) {
      sequence[length - 1] = typed[length];
      char last = typed[length++];
      if (length > 2 && ((last >= 'A' && last <= 'Z') || last == '~'))
        break;
    }
    key = sequence_key(sequence);
  }
  n_typed -= length;
  memmove(typed, typed + length, n_typed);
  return key;
}

int top_screen_key(double seconds) {
  double end = now_s() + seconds;
  for (;;) {
    if (ended_by || hung_up)
      return KEY_QUIT;
    if (stopped && on_screen) {
      stopped = 0;
      stop();
      return KEY_RESIZED;
    }
    if (resized) {
      resized = 0;
      return KEY_RESIZED;
    }
    if (n_typed) {
      int key = pop_key();
      if (key != KEY_NONE)
        return key;
      continue;
    }
    double left = end - now_s();
    if (left <= 0)
      return KEY_NONE;
    struct timespec wait = {.tv_sec = (time_t)left,
                            .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    struct pollfd keys = {.fd = on_screen && raw ? STDIN_FILENO : -1, .events = POLLIN};
    int ready = ppoll(&keys, 1, &wait, catching ? &usual : NULL);
    if (ready > 0 && keys.revents & POLLIN) {
      read_typed();
    } else if (ready > 0) {
      hung_up = true;
    }
  }
}

int top_screen_signal(void) {
  return ended_by;
}
