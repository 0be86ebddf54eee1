/* SPDX-License-Identifier: MIT
 *
 * A thread of the job makes the file longer where the helper is late. It opens no file: its number
 * might be one that another thread of the job has just closed for all that there are, and gets
 * again.
 */
#include "core_child.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process_trace.h"

enum { CHUNKS = 4 };

/* On tmpfs, where the file itself is mapped. */
static void make_trace(void) {
  char directory[] = "/dev/shm/tscope-unit-XXXXXX";
  const struct tscope_file_header header = {.version_major = 1};
  CHILD_CHECK(mkdtemp(directory));
  int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CHILD_CHECK(fd >= 0 && tscope_trace_create(fd, directory, "trace", &header, CHUNKS) == 0);
  CHILD_CHECK(!tscope_trace.carried);
  close(fd);
}

static void remove_trace(void) {
  unlink(tscope_trace.path);
  *strrchr(tscope_trace.path, '/') = '\0';
  rmdir(tscope_trace.path);
}

static u64 length_of(const char *path) {
  struct stat file;
  CHILD_CHECK(stat(path, &file) == 0);
  return (u64)file.st_size;
}

static u32 grow(u32 wanted, u32 *first) {
  return tscope_trace_grow(wanted, first, true);
}

static void grow_without_descriptors(void) {
  u32 first = 99;
  make_trace();
  /* setrlimit() is hooked: a sanitizer would call the hook before it is set up. */
  syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL);
  CHILD_CHECK(grow(1, &first) == 1 && first == 0);
  memset(tscope_trace_chunk(0), 1, TSCOPE_CHUNK_BYTES);
  CHILD_CHECK(grow(2, &first) == 2 && first == 1);
  CHILD_CHECK(length_of(tscope_trace.path) == tscope_trace_offset(3));
  CHILD_CHECK(((const u8 *)tscope_trace_chunk(0))[TSCOPE_CHUNK_BYTES - 1] == 1);
  for (u32 i = 0; i < TSCOPE_CHUNK_BYTES; i++)
    CHILD_CHECK(((const u8 *)tscope_trace_chunk(2))[i] == 0);
  remove_trace();
}

/* The helper's work, where a filter refuses it descriptors of its own. */
static void work_with_the_job_s_descriptors(void) {
  u32 first;
  u64 bytes;
  make_trace();
  int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  CHILD_CHECK(tscope_trace_open() < 0);
  CHILD_CHECK(tscope_trace_grow(2, &first, false) == 2);
  tscope_trace_cut(1);
  CHILD_CHECK(length_of(tscope_trace.path) == tscope_trace_offset(1));
  CHILD_CHECK(tscope_trace_look(-1, &bytes) == 0 && bytes == tscope_trace_offset(1));
  tscope_trace.carried = true;
  int fd = tscope_trace_open();
  CHILD_CHECK(fd > next + 100 && tscope_trace_look(fd, &bytes) == 0);
  CHILD_CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) == next);
  CHILD_CHECK(dup2(next, fd) == fd); /* it is the job's now */
  tscope_trace_close(fd);
  CHILD_CHECK(fcntl(fd, F_GETFD) >= 0);
  remove_trace();
}

/* It does not know MADV_POPULATE_WRITE. */
static void grow_on_an_old_kernel(void) {
  const u32 populate_write = 23;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, populate_write, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {LENGTH_OF(code), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0)
    grow_without_descriptors();
}

/* What has its name is not the trace, or not all of it. */
static void leave_other_files_alone(void) {
  char other[sizeof(tscope_trace.path) + 8];
  u32 first;
  make_trace();
  CHILD_CHECK(grow(1, &first) == 1);
  CHILD_CHECK(truncate(tscope_trace.path, 100) == 0 && grow(1, &first) == 0);
  snprintf(other, sizeof(other), "%s.other", tscope_trace.path);
  close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  CHILD_CHECK(rename(other, tscope_trace.path) == 0 && grow(1, &first) == 0);
  CHILD_CHECK(length_of(tscope_trace.path) == 0);
  unlink(tscope_trace.path);
  CHILD_CHECK(symlink("/dev/null", tscope_trace.path) == 0 && grow(1, &first) == 0);
  remove_trace();
}

static void in_a_child(void (*play)(void)) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    play();
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void no_descriptor_is_needed(void **state) {
  (void)state;
  in_a_child(grow_without_descriptors);
}

static void the_job_s_next_descriptor_is_not_taken(void **state) {
  (void)state;
  in_a_child(work_with_the_job_s_descriptors);
}

static void so_on_kernels_that_cannot_populate(void **state) {
  (void)state;
  in_a_child(grow_on_an_old_kernel);
}

static void another_file_is_left_alone(void **state) {
  (void)state;
  in_a_child(leave_other_files_alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_descriptor_is_needed),
      cmocka_unit_test(the_job_s_next_descriptor_is_not_taken),
      cmocka_unit_test(so_on_kernels_that_cannot_populate),
      cmocka_unit_test(another_file_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
