/* SPDX-License-Identifier: MIT
 *
 * Signals of the job: none is handled otherwise, or elsewhere, because of a preloaded library.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "hazard.h"

void signals_kept(char **arguments) {
  (void)arguments;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  struct sigaction actions[2][65];
  for (int number = 1; number < 65; number++)
    sigaction(number, NULL, &actions[0][number]);
  launch(50000);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int number = 1; number < 65; number++) {
    sigaction(number, NULL, &actions[1][number]);
    if (actions[0][number].sa_handler != actions[1][number].sa_handler)
      printf("handler of signal %d changed\n", number);
    if (sigismember(&before, number) != sigismember(&after, number))
      printf("mask of signal %d changed\n", number);
  }
}

static volatile sig_atomic_t delivered;
static void note_signal(int number) {
  (void)number;
  delivered = 1;
}

/* A signal that all of the job's threads block must stay pending, and must not be handled on a
 * thread of the shim. */
void signal_pending(char **arguments) {
  (void)arguments;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  signal(SIGUSR1, note_signal);
  launch(1000);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  kill(getpid(), SIGUSR1);
  launch(50000);
  usleep(150 * 1000);
  puts(delivered ? "signal was taken by another thread" : "signal stayed pending");
}

static void *take_signal(void *number) {
  sigset_t all;
  sigfillset(&all);
  if (sigwait(&all, number) != 0)
    fail("sigwait");
  return NULL;
}

static pthread_t of_signals;
static void note_thread(int number) {
  (void)number;
  delivered = 1 + pthread_equal(pthread_self(), of_signals);
}

static void *open_for_signal(void *unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, NULL);
  for (int i = 0; i < 100 && !delivered; i++)
    usleep(20 * 1000);
  return unused;
}

/* A job whose threads block all signals, but for one thread that waits for them; then for one in
 * which they are handled. */
void bus_error_sent(char **arguments) {
  (void)arguments;
  int number = 0;
  sigset_t all;
  launch(1000);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_create(&of_signals, NULL, take_signal, &number);
  kill(getpid(), SIGBUS);
  pthread_join(of_signals, NULL);
  printf("signal %d was taken\n", number);
  launch(1000);
  signal(SIGBUS, note_thread);
  kill(getpid(), SIGBUS);
  pthread_create(&of_signals, NULL, open_for_signal, NULL);
  pthread_join(of_signals, NULL);
  puts(delivered == 2 ? "and handled where it should be" : "and handled elsewhere");
}
