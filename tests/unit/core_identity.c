/* SPDX-License-Identifier: MIT
 *
 * Who a process is, which run it belongs to, what is told of its environment, and where its trace
 * may be put.
 */
#include "core_child.h"

#include <sys/stat.h>

#include "directory.h"
#include "env.h"
#include "identity.h"

/* Every test starts from an environment of its own. */
static struct tscope_identity identify(const char *const *variables) {
  struct tscope_identity identity;
  clearenv();
  for (; *variables; variables += 2)
    setenv(variables[0], variables[1], 1);
  tscope_env_read();
  tscope_identify(&identity);
  return identity;
}

#define IDENTIFY(...) identify((const char *const[]){__VA_ARGS__, NULL})

static void ranks_by_launcher(void **state) {
  (void)state;
  struct tscope_identity it =
      IDENTIFY("RANK", "5", "LOCAL_RANK", "1", "WORLD_SIZE", "8", "SLURM_PROCID", "0");
  assert_int_equal(it.rank, 5);
  assert_int_equal(it.local_rank, 1);
  assert_int_equal(it.world_size, 8);
  it =
      IDENTIFY("SLURM_PROCID", "3", "SLURM_LOCALID", "2", "SLURM_NTASKS", "4", "SLURM_JOB_ID", "9");
  assert_int_equal(it.rank, 3);
  assert_int_equal(it.local_rank, 2);
  assert_int_equal(it.world_size, 4);
  assert_string_equal(it.launcher, "slurm");
  it = IDENTIFY("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2");
  assert_int_equal(it.rank, 1);
  assert_int_equal(it.local_rank, TSCOPE_UNKNOWN_RANK);
  assert_string_equal(it.launcher, "openmpi");
}

static void ranks_unknown_are_unknown(void **state) {
  (void)state;
  struct tscope_identity it = IDENTIFY("RANK", "", "WORLD_SIZE", "8");
  assert_int_equal(it.rank, TSCOPE_UNKNOWN_RANK);
  it = IDENTIFY("RANK", "-1", "WORLD_SIZE", "many");
  assert_int_equal(it.rank, TSCOPE_UNKNOWN_RANK);
  assert_int_equal(it.world_size, 0);
  it = IDENTIFY("HOME", "/");
  assert_int_equal(it.rank, TSCOPE_UNKNOWN_RANK);
  assert_null(it.launcher);
}

static void run_is_the_same_for_all_ranks_and_differs_between_runs(void **state) {
  (void)state;
  struct tscope_identity a, b;
#define TORCHRUN(rank, local_size, port, restart)                                                  \
  IDENTIFY("RANK", rank, "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", local_size, "MASTER_ADDR", "n1",   \
           "MASTER_PORT", port, "TORCHELASTIC_RUN_ID", "none", "TORCHELASTIC_RESTART_COUNT",       \
           restart)
  a = TORCHRUN("0", "2", "29500", "0"), b = TORCHRUN("3", "2", "29500", "0");
  assert_string_equal(a.run, b.run);
  b = TORCHRUN("3", "2", "29501", "0");
  assert_string_not_equal(a.run, b.run);
  b = TORCHRUN("3", "2", "29500", "1");
  assert_string_not_equal(a.run, b.run);
  a = TORCHRUN("0", "4", "29500", "0"), b = TORCHRUN("1", "4", "29500", "0");
  assert_string_equal(a.run, b.run);
  /* On one host the launcher's process tells two runs with the same port apart. */
  char parent[32];
  snprintf(parent, sizeof parent, "-%d-", (int)getppid());
  assert_non_null(strstr(a.run, parent));
#undef TORCHRUN
  a = IDENTIFY("SLURM_JOB_ID", "12", "SLURM_STEP_ID", "3", "SLURM_PROCID", "1");
  assert_string_equal(a.run, "slurm-12.3");
}

static void run_can_be_named(void **state) {
  (void)state;
  assert_string_equal(IDENTIFY("TSCOPE_RUN", "lr-3e4", "SLURM_JOB_ID", "7").run, "lr-3e4");
  assert_string_equal(IDENTIFY("TSCOPE_RUN", "../../etc").run, "_._.._etc");
  assert_string_equal(IDENTIFY("TSCOPE_RUN", ".hidden").run, "_hidden");
}

static void sizes_and_words(void **state) {
  (void)state;
  IDENTIFY("TSCOPE_DETAIL_MAX", "64M", "TSCOPE_SPINE_MAX", "2g", "TSCOPE_DISK_FREE", "1048576",
           "TSCOPE", "on", "TSCOPE_GPU", "off");
  assert_int_equal(tscope_env.detail_max, 64u << 20);
  assert_int_equal(tscope_env.spine_max, 2ull << 30);
  assert_int_equal(tscope_env.disk_free, 1u << 20);
  assert_string_equal(tscope_env.gpu, "off");
  assert_true(tscope_env.enabled);
}

static void nonsense_leaves_the_default(void **state) {
  (void)state;
  int saved = dup(STDERR_FILENO);
  FILE *said = tmpfile();
  dup2(fileno(said), STDERR_FILENO);
  IDENTIFY("TSCOPE_DETAIL_MAX", "lots", "TSCOPE_SPINE_MAX", "-1", "TSCOPE_GPU", "cuda", "TSCOPE",
           "maybe", "TSCOPE_VERBOSE", "");
  dup2(saved, STDERR_FILENO);
  close(saved);
  assert_int_equal(tscope_env.detail_max, 256u << 20);
  assert_int_equal(tscope_env.spine_max, 1u << 30);
  assert_string_equal(tscope_env.gpu, "auto");
  assert_true(tscope_env.enabled);
  char line[256];
  int lines = 0;
  rewind(said);
  while (fgets(line, sizeof line, said))
    lines += strncmp(line, "tscope: TSCOPE", 14) == 0;
  fclose(said);
  assert_int_equal(lines, 4);
}

/* --- facts in the trace --- */

static void play_environment(void *nothing) {
  (void)nothing;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_TOKEN", "hunter2", 1);
  setenv("SLURM_ADDRESS", "https://me:hunter2@host/", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
  setenv("HOME", "/home/hunter2", 1);
  setenv("RANK", "2", 1);
  CHILD_CHECK(hooked_launch(1));
}

static void secrets_are_not_told(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_environment, NULL);
  const struct trace *trace = &scene.trace;
  assert_null(memmem(trace->bytes, trace->size, "hunter2", 7));
  assert_null(memmem(trace->bytes, trace->size, "AWS_", 4));
  assert_non_null(memmem(trace->bytes, trace->size, "NCCL_DEBUG", 10));
  assert_non_null(memmem(trace->bytes, trace->size, "(redacted)", 10));
  assert_int_equal(trace->header->rank, 2);
  scene_end(&scene);
}

static void write_file(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void commit_of_the_working_folder(void **state) {
  (void)state;
  struct scene scene;
  char command[512], folder[128], commit[128];
  scene_directory(&scene);
  snprintf(command, sizeof command,
           "mkdir -p %s/.git/refs/heads %s/src/deep %s/.git/worktrees/w %s/w", scene.directory,
           scene.directory, scene.directory, scene.directory);
  assert_int_equal(system(command), 0);
  snprintf(folder, sizeof folder, "%s/src/deep", scene.directory);
  write_file(scene.directory, ".git/HEAD", "ref: refs/heads/main\n");
  assert_false(tscope_git_commit(folder, commit, sizeof commit));
  write_file(scene.directory, ".git/packed-refs",
             "# pack-refs with: peeled\n" COMMIT " refs/heads/main\n");
  assert_true(tscope_git_commit(folder, commit, sizeof commit));
  assert_string_equal(commit, COMMIT);
  write_file(scene.directory, ".git/refs/heads/main", "f" COMMIT "\n");
  write_file(scene.directory, ".git/HEAD", COMMIT "\n");
  assert_true(tscope_git_commit(folder, commit, sizeof commit));
  assert_string_equal(commit, COMMIT);
  /* A further work tree. */
  snprintf(command, sizeof command, "gitdir: %s/.git/worktrees/w\n", scene.directory);
  write_file(scene.directory, "w/.git", command);
  write_file(scene.directory, ".git/worktrees/w/HEAD", "ref: refs/heads/main\n");
  write_file(scene.directory, ".git/worktrees/w/commondir", "../..\n");
  write_file(scene.directory, ".git/refs/heads/main", COMMIT "\n");
  snprintf(folder, sizeof folder, "%s/w", scene.directory);
  assert_true(tscope_git_commit(folder, commit, sizeof commit));
  assert_string_equal(commit, COMMIT);
  scene_clean(&scene);
}

/* --- the directory --- */

static unsigned mode_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return info.st_mode & 07777;
}

static int open_directory(const char *directory, const char *run) {
  char why[512] = "";
  int fd = tscope_directory_open(directory, run, why, sizeof why);
  assert_true(fd >= 0 || *why);
  if (fd >= 0)
    close(fd);
  return fd;
}

static void directories_are_made_private(void **state) {
  (void)state;
  struct scene scene;
  char path[256];
  scene_directory(&scene);
  mode_t mask = umask(0);
  snprintf(path, sizeof path, "%s/a/b//", scene.directory);
  assert_true(open_directory(path, "run") >= 0);
  assert_true(open_directory(path, "run") >= 0);
  umask(mask);
  static const char *const made[] = {"a", "a/b", "a/b/run"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s/%s", scene.directory, made[i]);
    assert_int_equal(mode_of(path), 0700);
  }
  scene_clean(&scene);
}

static void links_files_and_strangers_are_refused(void **state) {
  (void)state;
  struct scene scene;
  char path[256], link[256];
  scene_directory(&scene);
  snprintf(path, sizeof path, "%s/real", scene.directory);
  snprintf(link, sizeof link, "%s/link", scene.directory);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(symlink(path, link), 0);
  assert_true(open_directory(link, "run") < 0);
  assert_true(open_directory(path, "run") >= 0);
  snprintf(link, sizeof link, "%s/real/planted", scene.directory);
  assert_int_equal(symlink("/tmp", link), 0);
  assert_true(open_directory(path, "planted") < 0);
  write_file(scene.directory, "file", "");
  snprintf(path, sizeof path, "%s/file", scene.directory);
  assert_true(open_directory(path, "run") < 0);
  assert_true(open_directory("/", "run") < 0);
  assert_true(open_directory("relative", "run") < 0);
  if (geteuid() == 0) {
    snprintf(path, sizeof path, "%s/real", scene.directory);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_true(open_directory(path, "run") < 0);
  } else {
    print_message("not root: a directory of someone else is tried with / alone\n");
    assert_true(open_directory("/usr", "run") < 0);
  }
  scene_clean(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_by_launcher),
      cmocka_unit_test(ranks_unknown_are_unknown),
      cmocka_unit_test(run_is_the_same_for_all_ranks_and_differs_between_runs),
      cmocka_unit_test(run_can_be_named),
      cmocka_unit_test(sizes_and_words),
      cmocka_unit_test(nonsense_leaves_the_default),
      cmocka_unit_test(secrets_are_not_told),
      cmocka_unit_test(commit_of_the_working_folder),
      cmocka_unit_test(directories_are_made_private),
      cmocka_unit_test(links_files_and_strangers_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
