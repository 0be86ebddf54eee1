/* SPDX-License-Identifier: MIT
 *
 * The thread that carries out effects when they are due; the doorbell, with which other processes
 * signal that they have arrived in a collective; and waiting for operations.
 *
 * The doorbell is a datagram socket with an abstract name: it needs no file, so none is left when
 * the process is killed. Ringing it never blocks.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "clock.h"
#include "engine.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static unsigned waiters;
static int bell_socket = -1;
static struct sim_bell own_bell;
static int64_t planned = SIM_FOREVER; /* when the thread will wake up */
static bool running, forked;

struct sim_settings sim_settings;

double sim_setting(const char *name, double fallback) {
  char variable[64];
  snprintf(variable, sizeof(variable), "STANDIN_%s", name);
  const char *text = getenv(variable);
  return text && *text ? atof(text) : fallback;
}

const char *sim_gpu_name(void) {
  const char *name = getenv("STANDIN_GPU_NAME");
  return name && *name ? name : "tscope stand-in GPU";
}

__attribute__((constructor)) static void read_settings(void) {
  sim_settings = (struct sim_settings){
      .launch_ns = (int64_t)(sim_setting("LAUNCH_US", 3) * 1e3),
      .gap_ns = (int64_t)(sim_setting("GAP_US", 1) * 1e3),
      .kernel_ns = (int64_t)(sim_setting("KERNEL_US", 10) * 1e3),
      .copy_latency_ns = (int64_t)(sim_setting("COPY_LATENCY_US", 2) * 1e3),
      .pcie_bytes_per_ns = sim_setting("PCIE_GBPS", 20),
  };
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

void sim_lock(void) {
  pthread_mutex_lock(&lock);
}
void sim_unlock(void) {
  pthread_mutex_unlock(&lock);
}

static socklen_t address_of(const struct sim_bell *bell, struct sockaddr_un *address) {
  memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + 1, bell->name, sizeof(bell->name));
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(bell->name));
}

void sim_ring(const struct sim_bell *bell) {
  struct sockaddr_un address;
  socklen_t length = address_of(bell, &address);
  sendto(bell_socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, length);
}

void sim_wake_waiters(void) {
  if (waiters)
    pthread_cond_broadcast(&changed);
}

static void *schedule(void *unused) {
  (void)unused;
  prctl(PR_SET_TIMERSLACK, 1);
  prctl(PR_SET_NAME, "standin-gpu");
  for (;;) {
    sim_lock();
    sim_progress();
    int64_t due = planned = sim_next_due();
    sim_unlock();
    int64_t left = due - clock_now();
    struct timespec timeout = clock_timespec(left > 0 ? left : 0);
    struct pollfd socket = {.fd = bell_socket, .events = POLLIN};
    if (ppoll(&socket, 1, due == SIM_FOREVER ? NULL : &timeout, NULL) > 0) {
      char drain[8];
      while (recv(bell_socket, drain, sizeof(drain), MSG_DONTWAIT) > 0)
        ;
    }
  }
  return NULL;
}

/* A fork child has no scheduler thread, and another thread may have held the lock. */
static void in_fork_child(void) {
  pthread_mutex_init(&lock, NULL);
  forked = true;
}

bool sim_usable(void) {
  return !forked;
}

/* Called for the first work with effects: a program without such work gets no thread. */
static void start_thread(void) {
  struct sockaddr_un address;
  snprintf(own_bell.name, sizeof(own_bell.name), "standin-gpu-%d-%llx", getpid(),
           (unsigned long long)clock_now());
  bell_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  socklen_t length = address_of(&own_bell, &address);
  if (bell_socket < 0 || bind(bell_socket, (struct sockaddr *)&address, length) != 0) {
    perror("stand-in GPU: no doorbell");
    abort();
  }
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, schedule, NULL) != 0)
    abort();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_detach(thread);
  pthread_atfork(NULL, NULL, in_fork_child);
  running = true;
}

struct sim_bell sim_own_bell(void) {
  if (!running)
    start_thread();
  return own_bell;
}

void sim_scheduler_nudge(void) {
  int64_t due = sim_next_due();
  if (due < planned) {
    struct sim_bell bell = sim_own_bell();
    planned = due;
    sim_ring(&bell);
  }
  sim_wake_waiters();
}

static void wait_once(int64_t until) {
  waiters++;
  if (until == SIM_FOREVER) {
    sim_own_bell();
    pthread_cond_wait(&changed, &lock);
  } else {
    struct timespec deadline = clock_timespec(until);
    pthread_cond_timedwait(&changed, &lock, &deadline);
  }
  waiters--;
}

void sim_wait(struct sim_op *op) {
  sim_op_keep(op);
  int64_t from = clock_now();
  for (;;) {
    sim_progress();
    if (op->done)
      break;
    /* an operation that was due in sim_progress() and is not done needs the doorbell or another
     * thread */
    wait_once(op->settled && op->end > sim_progressed_to ? op->end : SIM_FOREVER);
  }
  sim_log_sync(&op, 1, from, clock_now());
  sim_op_release(op);
}

void sim_wait_until(bool (*done)(void *), void *user) {
  for (;;) {
    sim_progress();
    if (done(user))
      return;
    wait_once(SIM_FOREVER);
  }
}

void sim_wait_all(int device) {
  for (;;) {
    struct CUstream_st *stream = sim_streams();
    while (stream && !((device < 0 || stream->device == device) && stream->head))
      stream = stream->next;
    if (!stream)
      return;
    sim_wait(stream->tail);
  }
}
