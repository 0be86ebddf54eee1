/* SPDX-License-Identifier: MIT
 *
 * When a process records and when not: calls that do not start it, forked children of all kinds,
 * off switches, directories in which no trace can be written. Also what a recording process must
 * leave unchanged.
 */
#include "core_child.h"

#include "process/process_end.h"
#include "record/process_trace.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static bool quiet_call(void) {
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (thread)
    tscope_leave(thread);
  return thread != NULL;
}

static int entries(const char *directory) {
  int count = 0;
  DIR *folder = opendir(directory);
  while (folder && readdir(folder))
    count++;
  if (folder)
    closedir(folder);
  return count;
}

static void play_quiet(void *nothing) {
  (void)nothing;
  int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 100; i++)
    CHILD_CHECK(!quiet_call());
  CHILD_CHECK(entries("/proc/self/task") == threads);
  CHILD_CHECK(entries("/proc/self/fd") == descriptors);
}

static void play_without_trace(void (*play)(void *), void *more) {
  struct scene scene;
  scene_directory(&scene);
  scene_wait(&scene, scene_start(&scene, play, more));
  assert_true(scene_exited(&scene));
  assert_int_equal(entries(scene.directory), 2); /* . and .. */
  scene_clean(&scene);
}

static void quiet_calls_wake_nothing(void **state) {
  (void)state;
  play_without_trace(play_quiet, NULL);
}

static void play_switched_off(void *value) {
  setenv("TSCOPE", value, 1);
  CHILD_CHECK(!hooked_launch(1) && !hooked_launch(1));
}

static void switched_off(void **state) {
  (void)state;
  play_without_trace(play_switched_off, "off");
  play_without_trace(play_switched_off, "0");
  play_without_trace(play_switched_off, "No");
}

static void play_nowhere(void *nothing) {
  (void)nothing;
  setenv("TSCOPE_DIR", "/proc/tscope", 1);
  fclose(stderr);
  errno = 4711;
  CHILD_CHECK(!hooked_launch(1));
  CHILD_CHECK(errno == 4711);
  CHILD_CHECK(!hooked_launch(1));
}

static void off_where_nothing_can_be_written(void **state) {
  (void)state;
  play_without_trace(play_nowhere, NULL);
}

static pid_t by_fork(void) {
  return fork();
}

static pid_t by_clone(void) {
  return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

__attribute__((unused)) static void *do_nothing(void *nothing) {
  return nothing;
}

static void play_child(void *more) {
  pid_t (*make)(void) = *(pid_t(**)(void))more;
  for (int i = 0; i < 100; i++)
    CHILD_CHECK(hooked_launch(1));
  pid_t child = make();
  if (child == 0) {
    for (int i = 0; i < 100; i++)
      if (hooked_launch(2) || quiet_call())
        _exit(1);
/* Not with sanitizers: TSan does not support threads in a child of a process with threads. The end
 * of a thread takes the locks of ASan's allocator, which may have been held at the fork. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    pthread_t thread; /* its end must not change what it shares with the parent */
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
      pthread_join(thread, NULL);
#endif
    _exit(0);
  }
  int status;
  CHILD_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
  for (int i = 0; i < 100; i++)
    CHILD_CHECK(hooked_launch(1));
}

static void children_are_dormant(pid_t (*make)(void)) {
  struct scene scene;
  u64 counts[4] = {0};
  scene_play(&scene, play_child, &make);
  assert_int_equal(scene_traces(&scene), 1);
  assert_true(trace_walk(&scene.trace, count_launches, counts) > 0);
  assert_int_equal(counts[1], 200);
  assert_int_equal(counts[2], 0);
  scene_end(&scene);
}

static void fork_children_are_dormant(void **state) {
  (void)state;
  children_are_dormant(by_fork);
}

/* The handlers of pthread_atfork() do not run in such a child: it needs the kernel, which wipes a
 * page. */
static bool pages_are_wiped(void) {
  int status;
  char *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool can = madvise(page, 1, MADV_WIPEONFORK) == 0;
  *page = 1;
  pid_t child = by_clone();
  if (child == 0)
    _exit(*page);
  assert_int_equal(waitpid(child, &status, 0), child);
  munmap(page, 1);
  return can && WEXITSTATUS(status) == 0;
}

static void children_by_a_bare_system_call_are_dormant(void **state) {
  (void)state;
  if (!pages_are_wiped()) {
    print_message("skipped: this kernel, or the emulator of one, wipes no pages at fork\n");
    skip();
  }
  children_are_dormant(by_clone);
}

static void play_dormant_parent(void *nothing) {
  (void)nothing;
  CHILD_CHECK(!quiet_call());
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      CHILD_CHECK(hooked_launch(1));
      exit(0);
    }
    int status;
    CHILD_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

static void children_of_a_dormant_process_may_wake(void **state) {
  (void)state;
  struct scene scene;
  scene_directory(&scene);
  scene_wait(&scene, scene_start(&scene, play_dormant_parent, NULL));
  assert_true(scene_exited(&scene));
  assert_int_equal(scene_traces(&scene), 3);
  scene_clean(&scene);
}

static void play_side_effects(void *nothing) {
  (void)nothing;
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, NULL, &before);
  struct sigaction handlers[32] = {0};
  for (int signal = 1; signal < 32; signal++)
    sigaction(signal, NULL, &handlers[signal]);
  int descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 20000; i++) {
    errno = i;
    CHILD_CHECK(hooked_launch(1) && errno == i);
  }
  sigprocmask(SIG_SETMASK, NULL, &after);
  for (int signal = 1; signal < SIGRTMAX; signal++)
    CHILD_CHECK(sigismember(&before, signal) == sigismember(&after, signal));
  CHILD_CHECK(entries("/proc/self/fd") == descriptors);
  for (int signal = 1; signal < 32; signal++) {
    struct sigaction action = {0};
    sigaction(signal, NULL, &action);
    CHILD_CHECK(action.sa_handler == handlers[signal].sa_handler);
  }
}

static void errno_signals_and_descriptors_are_left_alone(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_side_effects, NULL);
  scene_end(&scene);
}

__attribute__((noinline)) static void nested(void) {
  char below[64];
  __asm__ volatile("" : : "r"(below) : "memory");
  CHILD_CHECK(!hooked_launch(2)); /* a hook called from inside a hooked call */
}

static jmp_buf out;

__attribute__((noinline)) static void jump_over_a_hook(void) {
  char below[512];
  __asm__ volatile("" : : "r"(below) : "memory");
  CHILD_CHECK(tscope_enter(TSCOPE_WAKES));
  longjmp(out, 1);
}

/* A hook with a much larger frame than the hook that was left. */
__attribute__((noinline)) static bool wide_hook(void) {
  char below[4096];
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  __asm__ volatile("" : : "r"(below) : "memory");
  if (thread)
    tscope_leave(thread);
  return thread != NULL;
}

static void play_guards(void *nothing) {
  (void)nothing;
  CHILD_CHECK(hooked_launch(1));
  struct tscope_thread *thread = tscope_enter(TSCOPE_WAKES);
  nested();
  tscope_leave(thread);
  if (!setjmp(out))
    jump_over_a_hook();
  CHILD_CHECK(hooked_launch(1));
  if (!setjmp(out))
    jump_over_a_hook();
  CHILD_CHECK(wide_hook());
}

static void nested_calls_and_jumps(void **state) {
  (void)state;
  struct scene scene;
  u64 counts[4] = {0};
  scene_play(&scene, play_guards, NULL);
  assert_true(trace_walk(&scene.trace, count_launches, counts) > 0);
  assert_int_equal(counts[1], 2);
  assert_int_equal(counts[2], 0);
  scene_end(&scene);
}

/* A program may write anything, also what is nearly a frame of a traceback: here begin and end of a
 * file's name are one and the same quote. */
static void play_nearly_frames(void *nothing) {
  static const char *const written[] = {
      "Traceback (most recent call last)\n  File \", line 3, in f\nValueError: first\n",
      "Traceback (most recent call last)\n  File \"\", line 3, in f\nValueError: second\n",
      "\u256d Traceback (most recent call last) \u256e\n\u2502 /:1 in f\n\u2570\nValueError: "
      "third\n",
      "\u256d Traceback (most recent call last) \u256e\n\u2502 :1 in f\n\u2570\nValueError: "
      "fourth\n"};
  (void)nothing;
  CHILD_CHECK(hooked_launch(1));
  for (size_t i = 0; i < LENGTH_OF(written); i++) {
    tscope_end_read_stderr(written[i], strlen(written[i]));
    const char *colon = strrchr(written[i], ':') + 2, *kept = tscope_trace.header->exception;
    CHILD_CHECK(strncmp(strchr(kept, ':') + 2, colon, strlen(colon) - 1) == 0);
  }
}

static void what_is_nearly_a_frame_harms_nothing(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_nearly_frames, NULL);
  assert_true(scene_exited(&scene));
  scene_end(&scene);
}

/* As CPython writes chains, and a program's last words. */
static void play_chains(void *nothing) {
  static const char chain[] =
      "Traceback (most recent call last):\n  File \"/job/data.py\", line 3, in get\n    d['x']\n"
      "KeyError: 'x'\n\n"
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"/job/train.py\", line 9, in load\n    get()\n"
      "ValueError: no label\n";
  static const char handled[] =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/job/a.py\", line 1, in f\n"
      "[rank1]: OSError: gone\n\n"
      "[rank1]: During handling of the above exception, another exception occurred:\n\n"
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/job/b.py\", line 2, in g\n"
      "[rank1]: TypeError: not a file\n";
  static const char alone[] = "Traceback (most recent call last):\n"
                              "  File \"/job/c.py\", line 5, in h\nIndexError: 7\n";
  static const char coloured[] = /* from Python 3.13 on, on a terminal or with FORCE_COLOR */
      "Traceback (most recent call last):\n  File \033[35m\"/job/d.py\"\033[0m, line "
      "\033[35m7\033[0m, in \033[35mread\033[0m\n    \033[31mget\033[0m\033[1;31m()\033[0m\n"
      "\033[1;35mKeyError\033[0m: \033[35m'y'\033[0m\n";
  (void)nothing;
  CHILD_CHECK(hooked_launch(1));
  const struct tscope_file_header *header = tscope_trace.header;
  tscope_end_read_stderr(chain, strlen(chain));
  CHILD_CHECK(strcmp(header->exception, "ValueError: no label; caused by KeyError: 'x', at "
                                        "data.py:3 (get)") == 0);
  CHILD_CHECK(strcmp(header->exception_place, "load\n9\n/job/train.py") == 0);
  tscope_end_read_stderr(handled, strlen(handled));
  CHILD_CHECK(strcmp(header->exception, "TypeError: not a file; while handling OSError: gone, at "
                                        "a.py:1 (f)") == 0);
  tscope_end_read_stderr(alone, strlen(alone));
  CHILD_CHECK(strcmp(header->exception, "IndexError: 7") == 0);
  tscope_end_read_stderr(coloured, strlen(coloured));
  CHILD_CHECK(strcmp(header->exception, "KeyError: 'y'") == 0);
  CHILD_CHECK(strcmp(header->exception_place, "read\n7\n/job/d.py") == 0);
  tscope_end_read_stderr("no data\n", 8);
  CHILD_CHECK(!header->last_line[0]);
  tscope_end_record(TSCOPE_END_EXIT, 1);
  CHILD_CHECK(strcmp(header->last_line, "no data") == 0 && header->last_line_ticks);
}

/* Of one text, however long, the end is read: what it begins with takes none of the job's time. */
static void play_much(void *nothing) {
  static char much[1 << 20];
  static const char first[] = "Traceback (most recent call last):\nValueError: first\n";
  static const char last[] = "Traceback (most recent call last):\nKeyError: last\nbye\n";
  (void)nothing;
  CHILD_CHECK(hooked_launch(1));
  const char *kept = tscope_trace.header->exception;
  memset(much, 'x', sizeof(much));
  memcpy(much, first, sizeof(first) - 1);
  for (size_t i = 4096; i < sizeof(much); i += 100)
    much[i] = '\n';
  tscope_end_read_stderr(much, sizeof(much));
  CHILD_CHECK(!*kept);
  tscope_end_read_stderr(first, 40); /* what was begun is not ended by what comes much later */
  tscope_end_read_stderr(much, sizeof(much));
  CHILD_CHECK(!*kept);
  memcpy(much + sizeof(much) - sizeof(last), last, sizeof(last));
  much[sizeof(much) - sizeof(last) - 1] = '\n';
  tscope_end_read_stderr(much, sizeof(much) - 1);
  CHILD_CHECK(strcmp(kept, "KeyError: last") == 0);
}

static void of_a_long_text_the_end_is_read(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_much, NULL);
  assert_true(scene_exited(&scene));
  scene_end(&scene);
}

static void the_first_of_chained_exceptions_is_kept_and_the_last_line(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_chains, NULL);
  assert_true(scene_exited(&scene));
  scene_end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(quiet_calls_wake_nothing),
      cmocka_unit_test(switched_off),
      cmocka_unit_test(off_where_nothing_can_be_written),
      cmocka_unit_test(fork_children_are_dormant),
      cmocka_unit_test(children_by_a_bare_system_call_are_dormant),
      cmocka_unit_test(children_of_a_dormant_process_may_wake),
      cmocka_unit_test(errno_signals_and_descriptors_are_left_alone),
      cmocka_unit_test(nested_calls_and_jumps),
      cmocka_unit_test(what_is_nearly_a_frame_harms_nothing),
      cmocka_unit_test(of_a_long_text_the_end_is_read),
      cmocka_unit_test(the_first_of_chained_exceptions_is_kept_and_the_last_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
