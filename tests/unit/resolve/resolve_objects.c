/* SPDX-License-Identifier: MIT
 *
 * Reading the list of loaded objects beside forks: no child inherits the dynamic linker's lock of
 * the list locked, and neither forks nor readers wait for ever. If a test hangs, the runner ends
 * it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "resolve/loaded_objects.h"

static int count(struct dl_phdr_info *info, size_t bytes, void *objects) {
  (void)info, (void)bytes;
  ++*(int *)objects;
  return 0;
}

static int objects(void) {
  int n = 0;
  assert_int_equal(tscope_each_object(count, &n), 0);
  return n;
}

static bool done;
static int forks = 300;

static void *read_until_done(void *unused) {
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
    objects();
  return unused;
}

/* The child reads the list as the unwinder or dlopen() would, without tscope. */
static void child_reads_the_list(void) {
  int n = 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    dl_iterate_phdr(count, &n);
    _exit(n > 0 ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void children_can_read_the_list(void **state) {
  (void)state;
  enum { THREADS = 2 };
  pthread_t threads[THREADS];
  done = false;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, read_until_done, NULL), 0);
  for (int i = 0; i < forks; i++)
    child_reads_the_list();
  __atomic_store_n(&done, true, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}

static int fork_inside(struct dl_phdr_info *info, size_t bytes, void *inside) {
  pid_t child = fork();
  if (child == 0)
    _exit(0);
  assert_int_equal(waitpid(child, NULL, 0), child);
  return count(info, bytes, inside) + 1;
}

static void a_reader_may_fork(void **state) {
  (void)state;
  int inside = 0;
  assert_int_equal(tscope_each_object(fork_inside, &inside), 1);
  assert_int_equal(inside, 1);
  child_reads_the_list();
}

static int in_handlers;

static void read_in_a_handler(void) {
  in_handlers += objects();
}

static void handlers_of_a_fork_may_read(void **state) {
  (void)state;
  assert_int_equal(pthread_atfork(read_in_a_handler, read_in_a_handler, read_in_a_handler), 0);
  in_handlers = 0;
  child_reads_the_list();
  assert_int_equal(in_handlers, 2 * objects());
}

static int stays_inside, may_leave;

static int stay(struct dl_phdr_info *info, size_t bytes, void *unused) {
  (void)info, (void)bytes, (void)unused;
  __atomic_store_n(&stays_inside, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&may_leave, __ATOMIC_ACQUIRE))
    usleep(1000);
  return 1;
}

static void *stay_inside(void *unused) {
  tscope_each_object(stay, NULL);
  return unused;
}

/* As a thread that was ended in the middle would: forks go on without it, also with other readers.
 */
static void forks_do_not_wait_for_ever(void **state) {
  (void)state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, stay_inside, NULL), 0);
  while (!__atomic_load_n(&stays_inside, __ATOMIC_ACQUIRE))
    usleep(1000);
  for (int i = 0; i < 50; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
  }
  __atomic_store_n(&may_leave, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  children_can_read_the_list(state);
}

/* resolve_objects [FORKS] */
int main(int argc, char **argv) {
  if (argc > 1)
    forks = atoi(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(children_can_read_the_list),
      cmocka_unit_test(a_reader_may_fork),
      cmocka_unit_test(forks_do_not_wait_for_ever),
      cmocka_unit_test(handlers_of_a_fork_may_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
