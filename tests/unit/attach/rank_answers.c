/* SPDX-License-Identifier: MIT
 *
 * Answers of ranks, as format/stack_request.h describes them: whole ones, ones that are still being
 * written, and what no rank would write.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/ask_ranks.h"
#include "format/stack_request.h"
#include "scratch.h"

#define FIRST "tscope-stacks 1 000000000000002a\n"

static char folder[] = "/tmp/tscope-answers-XXXXXX";
static char path[128];
static struct arena arena;
static struct rank_stall stacks;

static int answers_lost;

/* As on NFS where the server's answer is lost: the client asks again, and the link is there. */
int linkat(int from, const char *file, int to, const char *link, int flags) {
  int made = (int)syscall(SYS_linkat, from, file, to, link, flags);
  if (made || !answers_lost)
    return made;
  answers_lost--;
  errno = EEXIST;
  return -1;
}

static void a_link_whose_answer_was_lost_is_made(void **state) {
  char why[512], request[128];
  struct question question;
  struct stat info;
  (void)state;
  answers_lost = 1;
  snprintf(request, sizeof(request), "%s/" TSCOPE_REQUEST_FILE, folder);
  assert_int_equal(question_ask(&question, folder, why, sizeof(why)), 0);
  assert_int_equal(answers_lost, 0);
  assert_int_equal(stat(request, &info), 0);
  assert_int_equal(info.st_nlink, 1);
  question_withdraw(&question);
  assert_int_equal(stat(request, &info), -1);
}

static int set_up(void **state) {
  (void)state;
  scratch_make(folder);
  snprintf(path, sizeof(path), "%s/" TSCOPE_ANSWER_FILE, folder, "t");
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  scratch_remove(folder);
  arena_release(&arena);
  return 0;
}

static void put(const char *text, size_t bytes) {
  unlink(path);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, bytes), bytes);
  close(file);
}

static enum answer read_back(bool part) {
  struct question question = {.folder = folder, .number = 42, .owner = geteuid()};
  return question_read(&question, "t", part, &arena, &stacks);
}

static enum answer answer_of(const char *text) {
  put(text, strlen(text));
  return read_back(true);
}

static void a_whole_answer(void **state) {
  (void)state;
  assert_int_equal(answer_of(FIRST "process 2 - /my%20job\n"
                                   "thread 7 S a%20name hrtimer_nanosleep - - 3\n"
                                   "thread 8 R - - read /a%25b%2D\n"
                                   "peer 99 T - - -\n"
                                   "stack 8 1 0 1\n"
                                   "frame 3 1 /x%0Ay.py f\n"
                                   "frame 9 8 - %\n"
                                   "stack 7 0 1 0\n"
                                   "end\n"),
                   ANSWER_WHOLE);
  assert_int_equal(stacks.all_threads, 2);
  assert_null(stacks.no_python);
  assert_string_equal(stacks.folder, "/my job");
  assert_int_equal(stacks.n_threads, 2);
  const struct stalled_thread *first = &stacks.threads[0], *second = &stacks.threads[1];
  assert_true(first->main && !second->main);
  assert_string_equal(first->name, "a name");
  assert_string_equal(first->wait, "hrtimer_nanosleep");
  assert_null(first->call);
  assert_int_equal(first->waits_for, TSCOPE_ACTIVITY_SLEEP);
  assert_true(first->python && first->moved && !first->holds_gil && first->n_frames == 0);
  assert_int_equal(second->state, 'R');
  assert_string_equal(second->file, "/a%b-");
  assert_true(second->holds_gil && second->cut && !second->moved);
  assert_int_equal(second->n_frames, 2);
  assert_string_equal(second->frames[0]->file, "/x\ny.py");
  assert_int_equal(second->frames[0]->line, 3);
  assert_null(second->frames[1]->file);
  assert_string_equal(second->frames[1]->function, "");
  assert_true(stacks.n_peers == 1 && stacks.peers[0].pid == 99 && stacks.peers[0].state == 'T');
}

static void a_part(void **state) {
  (void)state;
  assert_int_equal(answer_of(FIRST "process 1 -\nthread 7 S x - - -\n"), ANSWER_PART);
  assert_null(stacks.folder); /* an older tscope does not say it */
  assert_int_equal(stacks.n_threads, 1);
  assert_non_null(stacks.no_python); /* why there are no frames */
  assert_int_equal(answer_of(FIRST "process 1 -\nthread 7 S x - - -\nstack 7 0 0 0\nframe 1 1 f"),
                   ANSWER_PART);
  assert_int_equal(stacks.threads[0].n_frames, 0); /* a line without its end may be cut */
  assert_int_equal(read_back(false), ANSWER_PART);
}

static void without_python(void **state) {
  (void)state;
  assert_int_equal(answer_of(FIRST "process 1 %\nend\n"), ANSWER_WHOLE);
  assert_string_equal(stacks.no_python, "");
}

static void what_is_no_answer(void **state) {
  (void)state;
  assert_int_equal(answer_of(""), ANSWER_NONE);
  assert_int_equal(answer_of("tscope-stacks 1 000000000000002b\nprocess 1 -\nend\n"), ANSWER_NONE);
  assert_int_equal(answer_of("tscope-stacks 1 000000000000002a"), ANSWER_NONE);
  unlink(path);
  assert_int_equal(read_back(true), ANSWER_NONE);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(read_back(true), ANSWER_NONE);
  unlink(path);
  assert_int_equal(symlink("/dev/zero", path), 0);
  assert_int_equal(read_back(true), ANSWER_NONE);
}

static void lines_that_no_rank_writes(void **state) {
  (void)state;
  assert_int_equal(answer_of(FIRST
                             "\n \nprocess\nthread\npeer\nstack\nframe\nframe 1 2 3 4 5 6 7 8 9\n"
                             "stack 1\nthread 99999999999999999999 %%% %G %0 % - - - -\n"
                             "frame 4 4 a b\nunknown 1 2 3\nend\n"),
                   ANSWER_WHOLE);
  assert_true(stacks.n_threads >= 1);
  static const char with_a_zero[] = FIRST "stack 1 0 0 0\n\0frame 1 1 a b\nend\n";
  put(with_a_zero, sizeof(with_a_zero) - 1);
  read_back(true);
}

/* Whatever the lines say, what they make is bounded by the length of the file. */
static void very_many_lines(void **state) {
  (void)state;
  const size_t most = 2 * TSCOPE_ANSWER_MOST + 100;
  char *text = malloc(most);
  size_t at = (size_t)sprintf(text, FIRST);
  for (u32 i = 0; at < most - 40; i++)
    at += (size_t)sprintf(text + at, "thread %u S - - - -\n", i);
  put(text, at);
  assert_int_equal(read_back(true), ANSWER_PART);
  assert_true(stacks.n_threads > 1000 && stacks.n_threads <= 4096);
  at = (size_t)sprintf(text, FIRST "stack 1 0 0 0\n");
  while (at < most - 40)
    at += (size_t)sprintf(text + at, "frame 1 1 a b\n");
  put(text, at);
  read_back(true);
  assert_true(stacks.threads[0].n_frames > 1000 && stacks.threads[0].n_frames <= 4096);
  free(text);
}

static void large_runs_look_more_rarely(void **state) {
  (void)state;
  assert_int_equal(tscope_seconds_between_looks(0), 1); /* not known */
  assert_int_equal(tscope_seconds_between_looks(1024), 1);
  assert_int_equal(tscope_seconds_between_looks(1025), 2);
  assert_int_equal(tscope_seconds_between_looks(10000), 10);
  assert_int_equal(tscope_seconds_between_looks(100000), 16);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_link_whose_answer_was_lost_is_made),
      cmocka_unit_test(a_whole_answer),
      cmocka_unit_test(a_part),
      cmocka_unit_test(without_python),
      cmocka_unit_test(what_is_no_answer),
      cmocka_unit_test(lines_that_no_rank_writes),
      cmocka_unit_test(very_many_lines),
      cmocka_unit_test(large_runs_look_more_rarely),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
