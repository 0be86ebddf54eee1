/* SPDX-License-Identifier: MIT */
#include "report/open_in_browser.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/now.h"
#include "base/printable.h"
#include "base/texts.h"

#define PERFETTO "https://ui.perfetto.dev"
#define PORT 9001
enum { REQUEST_BYTES = 8192, REQUEST_TIMEOUT_S = 10 };

/* Runs a program: false if it fails within three seconds. A browser that was not running before
 * stays, and may outlive the report. Its output is discarded. */
static bool run_program(const char *program, const char *argument) {
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setsid();
    execlp(program, program, argument, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  pid_t ended = 0;
  for (int tries = 0; child > 0 && ended == 0 && tries < 60; tries++) {
    ended = waitpid(child, &status, WNOHANG);
    if (ended == 0)
      nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  }
  return child > 0 && (ended == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/* BROWSER may list several, separated by colons; then the desktop's own. */
static bool open_address(const char *address) {
  const char *browser = getenv("BROWSER");
  char *list = memory_text(text_or_empty(browser)), *rest = NULL;
  bool opened = false;
  for (char *one = strtok_r(list, ":", &rest); one && !opened; one = strtok_r(NULL, ":", &rest))
    opened = run_program(one, address);
  free(list);
  return opened || run_program("xdg-open", address) || run_program("open", address);
}

bool open_page(const char *path, char *why, size_t why_bytes) {
  SCOPED_ARENA struct arena arena = {0};
  SCOPED char *whole = realpath(path, NULL);
  bool opened = whole && open_address(arena_printf(&arena, "file://%s", arena_url(&arena, whole)));
  if (!opened)
    snprintf(why, why_bytes, "no browser could be started here; open %s in one, on any machine",
             path);
  return opened;
}

static int listen_on_loopback(void) {
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  struct sockaddr_in here = {
      .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (server < 0)
    return -errno;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(server, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(server, 8) < 0) {
    int error = -errno;
    close(server);
    return error;
  }
  return server;
}

/* Whether there is something to read before `until`. */
static bool readable_before(int descriptor, double until) {
  struct pollfd wait = {.fd = descriptor, .events = POLLIN};
  for (;;) {
    double left = until - now_s();
    int ready = poll(&wait, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    if (ready > 0)
      return true;
    if (ready == 0 || errno != EINTR)
      return false;
  }
}

/* Reads up to the blank line after the headers; false if none comes. */
static bool read_request(int client, char request[REQUEST_BYTES]) {
  size_t n = 0;
  double until = now_s() + REQUEST_TIMEOUT_S;
  while (n + 1 < REQUEST_BYTES && readable_before(client, until)) {
    ssize_t more = recv(client, request + n, REQUEST_BYTES - 1 - n, 0);
    if (more <= 0)
      return false;
    n += (size_t)more;
    request[n] = 0;
    if (strstr(request, "\r\n\r\n"))
      return true;
  }
  return false;
}

static bool send_all(int client, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t sent = send(client, bytes, n, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes += sent;
    n -= (size_t)sent;
  }
  return true;
}

static bool send_header(int client, const char *status, const char *more,
                        unsigned long long bytes) {
  char head[1024];
  int n = snprintf(head, sizeof(head),
                   "HTTP/1.1 %s\r\n"
                   "Access-Control-Allow-Origin: " PERFETTO "\r\n"
                   "Cache-Control: no-store\r\n"
                   "Connection: close\r\n"
                   "Content-Length: %llu\r\n%s\r\n",
                   status, bytes, more);
  return send_all(client, head, (size_t)n);
}

static bool send_file(int client, int file) {
  struct stat facts;
  char bytes[65536];
  ssize_t n = -1;
  if (fstat(file, &facts) < 0 || lseek(file, 0, SEEK_SET) < 0)
    return false;
  if (!send_header(client, "200 OK", "Content-Type: application/octet-stream\r\n",
                   (unsigned long long)facts.st_size))
    return false;
  while ((n = read(file, bytes, sizeof(bytes))) > 0)
    if (!send_all(client, bytes, (size_t)n))
      return false;
  return n == 0;
}

/* True when the file was handed over. Pages of other sites are refused: a browser says in Origin
 * whose page asks. */
static bool answer_request(int client, int file) {
  static const char wanted[] = "GET /tscope "; /* the browser sees this name */
  char request[REQUEST_BYTES];
  if (!read_request(client, request))
    return false;
  const char *origin = strcasestr(request, "\r\nOrigin:");
  const char *host = strcasestr(request, "\r\nHost:");
  bool ours = host && (strncmp(host + 7 + strspn(host + 7, " "), "127.0.0.1:9001\r\n", 16) == 0);
  if (origin) {
    origin += 9 + strspn(origin + 9, " ");
    ours = ours && strncmp(origin, PERFETTO "\r\n", sizeof(PERFETTO) + 1) == 0;
  }
  if (ours && text_starts_with(request, "OPTIONS ")) {
    send_header(
        client, "204 No Content",
        "Access-Control-Allow-Methods: GET\r\nAccess-Control-Allow-Private-Network: true\r\n", 0);
    return false;
  }
  if (ours && text_starts_with(request, wanted))
    return send_file(client, file);
  send_header(client, ours ? "404 Not Found" : "403 Forbidden", "", 0);
  return false;
}

bool open_in_perfetto(const char *path, unsigned patience_s, char *why, size_t why_bytes) {
  bool served = false;
  int file = open(path, O_RDONLY | O_CLOEXEC), server = file < 0 ? -errno : listen_on_loopback();
  if (server < 0) {
    snprintf(why, why_bytes,
             "port %d of this machine is not free (%s); open %s by hand in " PERFETTO, PORT,
             strerror(-server), path);
  } else if (!open_address(PERFETTO "/#!/?url=http://127.0.0.1:9001/tscope&referrer=tscope")) {
    snprintf(why, why_bytes,
             "no browser could be started here; copy %s to a machine that has one, and open it "
             "in " PERFETTO,
             path);
  } else {
    snprintf(why, why_bytes, "no browser fetched it within %u s; open %s by hand in " PERFETTO,
             patience_s, path);
    for (double until = now_s() + patience_s; !served && readable_before(server, until);) {
      int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
      if (client < 0)
        continue;
      served = answer_request(client, file);
      shutdown(client, SHUT_WR);
      close(client);
    }
  }
  if (server >= 0)
    close(server);
  if (file >= 0)
    close(file);
  return served;
}
