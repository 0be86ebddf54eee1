/* SPDX-License-Identifier: MIT
 *
 * The identity of a process, its run, what is recorded of its environment, and where its trace may
 * be.
 */
#include "core_child.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "facts/cpu_quota.h"
#include "facts/directory.h"
#include "facts/identity.h"
#include "facts/memory_limit.h"
#include "facts/redact.h"
#include "facts/run_folders.h"
#include "settings/env.h"

static bool emulated; /* from the environment at the beginning, because tests clear it */

/* Each test has its own environment. */
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

static void a_node_of_slurm_is_recorded_with_its_host(void **state) {
  (void)state;
  char own[64];
  gethostname(own, sizeof(own));
  assert_string_equal(IDENTIFY("HOME", "/").host, own);
  assert_string_equal(IDENTIFY("SLURMD_NODENAME", own).host, own);
  char both[80];
  snprintf(both, sizeof(both), "n1@%.31s", own);
  assert_string_equal(IDENTIFY("SLURMD_NODENAME", "n1").host, both);
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
  assert_string_equal(a.run, TORCHRUN("0", "2", "29500", "0").run);
  assert_string_equal(a.run, b.run);
  a = TORCHRUN("0", "4", "29500", "0"), b = TORCHRUN("1", "4", "29500", "0");
  assert_string_equal(a.run, b.run);
  /* On one host the launcher's process distinguishes two runs with the same port. */
  char parent[32];
  snprintf(parent, sizeof(parent), "-%d-", (int)getppid());
  assert_non_null(strstr(a.run, parent));
#undef TORCHRUN
  a = IDENTIFY("SLURM_JOB_ID", "12", "SLURM_STEP_ID", "3", "SLURM_PROCID", "1");
  assert_string_equal(a.run, "slurm-12.3");
}

static void run_can_be_named(void **state) {
  (void)state;
  assert_string_equal(IDENTIFY("TSCOPE_RUN", "lr-3e4", "SLURM_JOB_ID", "7").run, "lr-3e4");
  /* The name of the run, if one name is set before the job. */
#define IN_JOB(...)                                                                                \
  IDENTIFY("TSCOPE_RUN", "a", "TSCOPE_RUN_JOB", "none", "SLURM_JOB_ID", "7", __VA_ARGS__)
  assert_string_equal(IN_JOB("SLURM_STEP_ID", "0").run, "a");
  assert_string_equal(IN_JOB("SLURM_STEP_ID", "2").run, "a-step2");
  assert_string_equal(
      IN_JOB("SLURM_ARRAY_TASK_ID", "3", "SLURM_RESTART_COUNT", "1", "SLURM_STEP_ID", "1").run,
      "a-task3-requeue1-step1");
  assert_string_equal(
      IDENTIFY("TSCOPE_RUN", "a", "TSCOPE_RUN_JOB", "7", "SLURM_JOB_ID", "7", "SLURM_STEP_ID", "2")
          .run,
      "a");
  assert_string_equal(IDENTIFY("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "0", "SLURM_RESTART_COUNT",
                               "2", "SLURM_PROCID", "0")
                          .run,
                      "slurm-7.0-requeue2");
#undef IN_JOB
  assert_string_equal(IDENTIFY("TSCOPE_RUN", "../../etc").run, "_._.._etc");
  assert_string_equal(IDENTIFY("TSCOPE_RUN", ".hidden").run, "_hidden");
}

/* Whoever waits has the variables of `waits`; a process that it started has those of `started`,
 * which name the run. */
static bool finds(const char *const *waits, const char *const *started) {
  struct tscope_run_folders folders;
  struct tscope_identity it = identify(started);
  identify(waits);
  tscope_run_folders_find(&folders, 0);
  return tscope_run_folders_have(&folders, it.run);
}

#define SOME(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SLURM "SLURM_JOB_ID", "7", "SLURM_JOB_NODELIST", "n[1-2]"
#define GIVEN "TSCOPE_RUN", "my run", "TSCOPE_RUN_JOB", "none"

static void who_waits_finds_the_folder_of_those_it_started(void **state) {
  (void)state;
  const char *const *const none = SOME("HOME", "/");
  assert_true(finds(none, SOME("RANK", "1", "WORLD_SIZE", "4")));
  assert_true(
      finds(none, SOME("RANK", "1", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR",
                       "node-12", "MASTER_PORT", "29500", "TORCHELASTIC_RUN_ID", "night")));
  assert_true(finds(none, SOME("PMIX_NAMESPACE", "prterun-n1-77@1", "PMIX_RANK", "0")));
  assert_true(finds(SOME("SLURM_JOB_ID", "7"), SOME(SLURM, "SLURM_STEP_ID", "2")));
  assert_true(finds(SOME(SLURM), SOME(SLURM, "SLURM_STEP_ID", "2", "SLURM_RESTART_COUNT", "1",
                                      "RANK", "0", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "4",
                                      "TORCHELASTIC_RUN_ID", "none")));
  assert_true(finds(SOME(GIVEN), SOME(GIVEN)));
  assert_true(finds(SOME(GIVEN, SLURM), SOME(GIVEN, SLURM, "SLURM_STEP_ID", "3")));
  assert_true(finds(SOME(GIVEN, SLURM), SOME(GIVEN, SLURM, "SLURM_ARRAY_TASK_ID", "12")));
  assert_true(finds(SOME(GIVEN, SLURM), SOME(GIVEN, SLURM, "SLURM_RESTART_COUNT", "2")));

  assert_false(finds(SOME(GIVEN), SOME("TSCOPE_RUN", "my run 2")));
  assert_false(finds(SOME(GIVEN), SOME(SLURM)));
  assert_false(finds(SOME(SLURM), SOME("SLURM_JOB_ID", "71")));
  assert_false(finds(SOME(SLURM), SOME("RANK", "1", "WORLD_SIZE", "4")));
  struct tscope_run_folders folders;
  identify(none);
  tscope_run_folders_find(&folders, 1234567);
  assert_true(tscope_run_folders_have(&folders, "python-1234567-3088120"));
  assert_false(tscope_run_folders_have(&folders, "python-123456-3088120"));
}

static void sizes_and_words(void **state) {
  (void)state;
  IDENTIFY("TSCOPE_RING_MAX", "64M", "TSCOPE_RETAINED_MAX", "2g", "TSCOPE_DISK_FREE", "1048576",
           "TSCOPE", "on", "TSCOPE_GPU", "off");
  assert_int_equal(tscope_env.ring_max, 64u << 20);
  assert_int_equal(tscope_env.retained_max, 2ull << 30);
  assert_int_equal(tscope_env.disk_free, 1u << 20);
  assert_string_equal(tscope_env.gpu, "off");
  assert_true(tscope_env.enabled);
}

static void nonsense_leaves_the_default(void **state) {
  (void)state;
  int saved = dup(STDERR_FILENO);
  FILE *said = tmpfile();
  dup2(fileno(said), STDERR_FILENO);
  IDENTIFY("TSCOPE_RING_MAX", "lots", "TSCOPE_RETAINED_MAX", "-1", "TSCOPE_GPU", "cuda", "TSCOPE",
           "maybe", "TSCOPE_VERBOSE", "", "TSCOPE_GPU_GEMMS", "5x", "TSCOPE_STALL", "SECONDS");
  dup2(saved, STDERR_FILENO);
  close(saved);
  assert_int_equal(tscope_env.ring_max, 256u << 20);
  assert_int_equal(tscope_env.retained_max, 1u << 30);
  assert_string_equal(tscope_env.gpu, "auto");
  assert_int_equal(tscope_env.gpu_gemms, 16);
  assert_true(tscope_env.enabled);
  char line[512];
  int lines = 0;
  rewind(said);
  while (fgets(line, sizeof(line), said))
    lines++;
  fclose(said);
  assert_int_equal(lines, 1);
  assert_string_equal(line, "tscope: not valid: TSCOPE=maybe (using on), TSCOPE_GPU=cuda (using "
                            "auto), TSCOPE_GPU_GEMMS=5x (using 16), TSCOPE_STALL=SECONDS "
                            "(using auto), TSCOPE_RING_MAX=lots (using 256M), "
                            "TSCOPE_RETAINED_MAX=-1 (using 1G)\n");
}

static void play_environment(void *nothing) {
  (void)nothing;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_TOKEN", "hunter2", 1);
  setenv("SLURM_ADDRESS", "https://me:hunter2@host/", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "hunter2", 1);
  setenv("ACCELERATE_HUB", "hf_hunter2hunter2hunter2", 1); /* known by how it begins */
  setenv("MEGATRON_ARGS", "--wandb-pwd=hunter2 --lr 1", 1);
  setenv("HOME", "/home/hunter2", 1);
  setenv("RANK", "2", 1);
  setenv("PL_GLOBAL_SEED", "4711", 1); /* a variable on which results depend */
  setenv("FLASH_ATTENTION_DETERMINISTIC", "1", 1);
  CHILD_CHECK(hooked_launch(1));
}

static void secrets_are_not_recorded(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_environment, NULL);
  const struct trace *trace = &scene.trace;
  assert_null(memmem(trace->bytes, trace->size, "hunter2", 7));
  assert_null(memmem(trace->bytes, trace->size, "AWS_", 4));
  assert_non_null(memmem(trace->bytes, trace->size, "NCCL_DEBUG", 10));
  assert_non_null(memmem(trace->bytes, trace->size, "(redacted)", 10));
  assert_non_null(memmem(trace->bytes, trace->size, "PL_GLOBAL_SEED", 14));
  assert_non_null(memmem(trace->bytes, trace->size, "FLASH_ATTENTION_DETERMINISTIC", 29));
  assert_int_equal(trace->header->rank, 2);
  scene_end(&scene);
}

/* Another thread's setenv() may free the list and its entries while they are read. */
static void play_environment_goes(void *nothing) {
  (void)nothing;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char **list = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHILD_CHECK(list != MAP_FAILED && gone != MAP_FAILED);
  size_t n = page / sizeof(*list), used = 0;
  for (char **entry = environ; *entry && used < n - 2; entry++)
    list[used++] = *entry;
  list[used++] = gone;
  while (used < n - 1)
    list[used++] = (char *)(uintptr_t) "";
  list[used] = (char *)(uintptr_t) "NCCL_LAST=seen";
  munmap(gone, page);
  munmap((char *)list + page, page);
  environ = list;
  CHILD_CHECK(hooked_launch(1));
  environ = NULL;
}

static void an_environment_that_is_freed_does_no_harm(void **state) {
  (void)state;
  struct scene scene;
  scene_play(&scene, play_environment_goes, NULL);
  assert_non_null(memmem(scene.trace.bytes, scene.trace.size, "NCCL_LAST", 9));
  scene_end(&scene);
}

static void assert_redacted(const char *const *arguments, const char *wanted) {
  char line[1024], redacted[1024];
  size_t n = 0;
  for (; *arguments; n += strlen(*arguments++) + 1)
    strcpy(line + n, *arguments);
  tscope_redact_command(redacted, sizeof(redacted), line, n);
  assert_string_equal(redacted, wanted);
  char cut[16]; /* also if the buffer is small */
  tscope_redact_command(cut, sizeof(cut), line, n);
  assert_int_equal(strlen(cut), strlen(wanted) < sizeof(cut) ? strlen(wanted) : sizeof(cut) - 1);
  assert_memory_equal(cut, wanted, strlen(cut));
}

#define ASSERT_REDACTED(wanted, ...)                                                               \
  assert_redacted((const char *const[]){__VA_ARGS__, NULL}, wanted)

static void secrets_of_a_command_line_are_not_recorded(void **state) {
  (void)state;
  ASSERT_REDACTED("python train.py --token=(redacted) --lr 3e-4", "python", "train.py",
                  "--token=hunter2", "--lr", "3e-4");
  ASSERT_REDACTED("train --password (redacted) --epochs 3", "train", "--password", "hunter2",
                  "--epochs", "3");
  ASSERT_REDACTED("train --hf-token (redacted)", "train", "--hf-token", "hunter2");
  ASSERT_REDACTED("train --password=(redacted) end", "train", "--password=hun ter, 2", "end");
  ASSERT_REDACTED("train --api-key --verbose", "train", "--api-key", "--verbose");
  ASSERT_REDACTED("train wandb.api_key=(redacted) model.dim=64", "train", "wandb.api_key=hunter2",
                  "model.dim=64");
  ASSERT_REDACTED("train WANDB_API_KEY=(redacted)", "train", "WANDB_API_KEY=hunter2");
  ASSERT_REDACTED("train {\"dbPassword\": \"(redacted)\", \"size\": 3}", "train",
                  "{\"dbPassword\": \"hunter2\", \"size\": 3}");
  ASSERT_REDACTED("train s3://(redacted)@bucket/data", "train", "s3://me:hunter2@bucket/data");
  ASSERT_REDACTED("train https://host/x?access_token=(redacted)&page=2", "train",
                  "https://host/x?access_token=hunter2&page=2");
  ASSERT_REDACTED("curl -H Authorization: (redacted)", "curl", "-H",
                  "Authorization: Bearer hunter2");
  ASSERT_REDACTED("train (redacted)", "train", "hf_abcdefghijklmnopqrstuvwxyz");
  ASSERT_REDACTED("python -c login('(redacted)')", "python", "-c",
                  "login('sk-proj-0123456789abcdef')");
}

static void other_arguments_are_recorded(void **state) {
  (void)state;
  ASSERT_REDACTED("train --tokenizer=gpt2 --max-tokens 4096 --pad_token_id=0", "train",
                  "--tokenizer=gpt2", "--max-tokens", "4096", "--pad_token_id=0");
  ASSERT_REDACTED("train --author me --passes 3 --keyframes 2", "train", "--author", "me",
                  "--passes", "3", "--keyframes", "2");
  ASSERT_REDACTED("train https://host/user@v1/x a@b.c sk-short", "train", "https://host/user@v1/x",
                  "a@b.c", "sk-short");
  ASSERT_REDACTED("train --name= ''", "train", "--name=", "''");
}

/* Runs this program again, with a secret on its command line. */
static void play_command(void *setting) {
  setenv("TSCOPE_COMMAND", setting, 1);
  execl("/proc/self/exe", "core_identity", "--wake", "--token=hunter2", "--epochs=3", NULL);
}

static void a_command_line_is_recorded_unless_switched_off(void **state) {
  (void)state;
  if (emulated) {
    print_message("skipped: an emulated program starts others without the emulator\n");
    skip();
  }
  for (int recorded = 0; recorded < 2; recorded++) {
    struct scene scene;
    scene_play(&scene, play_command, (void *)(uintptr_t)(recorded ? "on" : "off"));
    const struct trace *trace = &scene.trace;
    assert_null(memmem(trace->bytes, trace->size, "hunter2", 7));
    assert_int_equal(memmem(trace->bytes, trace->size, "--epochs=3", 10) != NULL, recorded);
    scene_end(&scene);
  }
}

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* More than is read at once, with a line that is longer than a reference may be. */
static void write_many_references(const struct scene *scene) {
  char text[16384], *at = text, *end = text + sizeof(text);
  at += snprintf(at, (size_t)(end - at), "# pack-refs with: peeled\n# %2000s\n", "");
  for (int i = 0; i < 100; i++)
    at += snprintf(at, (size_t)(end - at), "f%.39s refs/heads/main%d\n^%.40s\n", COMMIT, i, COMMIT);
  snprintf(at, (size_t)(end - at), COMMIT " refs/heads/main\n");
  scratch_text(scene->directory, ".git/packed-refs", text);
}

static void commit_of_the_working_folder(void **state) {
  (void)state;
  struct scene scene;
  char command[512], folder[128], commit[128];
  scene_directory(&scene);
  snprintf(command, sizeof(command),
           "mkdir -p %s/.git/refs/heads %s/src/deep %s/.git/worktrees/w %s/w", scene.directory,
           scene.directory, scene.directory, scene.directory);
  assert_int_equal(system(command), 0);
  snprintf(folder, sizeof(folder), "%s/src/deep", scene.directory);
  scratch_text(scene.directory, ".git/HEAD", "ref: refs/heads/main\n");
  assert_false(tscope_git_commit(folder, commit, sizeof(commit)));
  write_many_references(&scene);
  assert_true(tscope_git_commit(folder, commit, sizeof(commit)));
  assert_string_equal(commit, COMMIT);
  scratch_text(scene.directory, ".git/refs/heads/main", "f" COMMIT "\n");
  scratch_text(scene.directory, ".git/HEAD", COMMIT "\n");
  assert_true(tscope_git_commit(folder, commit, sizeof(commit)));
  assert_string_equal(commit, COMMIT);
  /* A linked work tree. */
  snprintf(command, sizeof(command), "gitdir: %s/.git/worktrees/w\n", scene.directory);
  scratch_text(scene.directory, "w/.git", command);
  scratch_text(scene.directory, ".git/worktrees/w/HEAD", "ref: refs/heads/main\n");
  scratch_text(scene.directory, ".git/worktrees/w/commondir", "../..\n");
  scratch_text(scene.directory, ".git/refs/heads/main", COMMIT "\n");
  snprintf(folder, sizeof(folder), "%s/w", scene.directory);
  assert_true(tscope_git_commit(folder, commit, sizeof(commit)));
  assert_string_equal(commit, COMMIT);
  scene_clean(&scene);
}

static unsigned mode_of(const char *path) {
  struct stat info;
  assert_int_equal(lstat(path, &info), 0);
  return info.st_mode & 07777;
}

static int open_for(bool group, const char *directory, const char *run) {
  char why[512] = "";
  int fd = tscope_directory_open(directory, run, group, why, sizeof(why));
  assert_true(fd >= 0 || *why);
  if (fd >= 0)
    close(fd);
  return fd;
}

static int open_directory(const char *directory, const char *run) {
  return open_for(false, directory, run);
}

static void a_group_may_read_what_is_made_for_it(void **state) {
  (void)state;
  struct scene scene;
  char path[256];
  scene_directory(&scene);
  mode_t mask = umask(077);
  snprintf(path, sizeof(path), "%s/a", scene.directory);
  assert_true(open_for(true, path, "run") >= 0);
  assert_int_equal(mode_of(path), 02750);
  assert_int_equal(chmod(path, 0711), 0); /* existing directories keep their permissions */
  assert_true(open_for(true, path, "run2") >= 0);
  umask(mask);
  assert_int_equal(mode_of(path), 0711);
  snprintf(path, sizeof(path), "%s/a/run2", scene.directory);
  assert_int_equal(mode_of(path), 02750);
  scene_clean(&scene);
}

static void directories_are_made_private(void **state) {
  (void)state;
  struct scene scene;
  char path[256];
  scene_directory(&scene);
  mode_t mask = umask(0);
  snprintf(path, sizeof(path), "%s/a/b//", scene.directory);
  assert_true(open_directory(path, "run") >= 0);
  assert_true(open_directory(path, "run") >= 0);
  umask(mask);
  static const char *const made[] = {"a", "a/b", "a/b/run"};
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof(path), "%s/%s", scene.directory, made[i]);
    assert_int_equal(mode_of(path), 0700);
  }
  scene_clean(&scene);
}

static void links_files_and_strangers_are_refused(void **state) {
  (void)state;
  struct scene scene;
  char path[256], link[256];
  scene_directory(&scene);
  snprintf(path, sizeof(path), "%s/real", scene.directory);
  snprintf(link, sizeof(link), "%s/link", scene.directory);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(symlink(path, link), 0);
  assert_true(open_directory(link, "run") < 0);
  assert_true(open_directory(path, "run") >= 0);
  snprintf(link, sizeof(link), "%s/real/planted", scene.directory);
  assert_int_equal(symlink("/tmp", link), 0);
  assert_true(open_directory(path, "planted") < 0);
  scratch_text(scene.directory, "file", "");
  snprintf(path, sizeof(path), "%s/file", scene.directory);
  assert_true(open_directory(path, "run") < 0);
  assert_true(open_directory("/", "run") < 0);
  assert_true(open_directory("relative", "run") < 0);
  if (geteuid() == 0) {
    snprintf(path, sizeof(path), "%s/real", scene.directory);
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_true(open_directory(path, "run") < 0);
  } else {
    print_message("not root: a directory of someone else is tried with / alone\n");
    assert_true(open_directory("/usr", "run") < 0);
  }
  scene_clean(&scene);
}

/* The folders of a path, below `root`. */
static void make_file(const char *root, const char *name, const char *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/%s", root, name);
  for (char *at = strchr(path + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = '\0';
    mkdir(path, 0755);
    *at = '/';
  }
  scratch_text(root, name, text);
}

/* The smallest quota between the process's group and the root counts, in both versions of control
 * groups. */
static void what_control_groups_allow(void **state) {
  static const struct {
    const char *groups, *file, *text, *second, *second_text;
    u32 thousandths;
    const char *group;
  } cases[] = {
      {"0::/slice/job", "sys/fs/cgroup/slice/job/cpu.max", "150000 100000\n", NULL, NULL, 1500,
       "/slice/job"},
      {"0::/slice/job", "sys/fs/cgroup/slice/job/cpu.max", "400000 100000\n",
       "sys/fs/cgroup/slice/cpu.max", "200000 100000\n", 2000, "/slice"},
      {"0::/slice/job", "sys/fs/cgroup/slice/job/cpu.max", "50000 100000\n",
       "sys/fs/cgroup/slice/cpu.max", "max 100000\n", 500, "/slice/job"},
      {"0::/slice/job", "sys/fs/cgroup/slice/job/cpu.max", "max 100000\n", NULL, NULL, 0, NULL},
      /* the path is that on the host, and only the group itself is mounted in the container */
      {"0::/kubepods/pod1/c", "sys/fs/cgroup/cpu.max", "300000 100000\n", NULL, NULL, 3000, "/"},
      {"4:cpu,cpuacct:/job\n3:memory:/other\n0::/",
       "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n",
       "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n", 2500, "/job"},
      {"4:cpu:/job", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n",
       "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n", 0, NULL},
      {"4:cpu:/job", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n", NULL, NULL, 0, NULL},
      {"4:cpuset:/job", "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n",
       "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n", 0, NULL},
      {"0::/job", "sys/fs/cgroup/job/cpu.max", "9 0\n", "sys/fs/cgroup/cpu.max", "x y\n", 0, NULL},
      {"nonsense", "sys/fs/cgroup/cpu.max", "100000 100000\n", NULL, NULL, 0, NULL},
  };
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct scene scene;
    struct tscope_cpu_quota quota;
    scene_directory(&scene);
    make_file(scene.directory, "proc/self/cgroup", cases[i].groups);
    make_file(scene.directory, cases[i].file, cases[i].text);
    if (cases[i].second)
      make_file(scene.directory, cases[i].second, cases[i].second_text);
    assert_int_equal(tscope_cpu_quota(scene.directory, &quota), cases[i].thousandths > 0);
    if (cases[i].thousandths) {
      assert_int_equal(quota.thousandths, cases[i].thousandths);
      assert_string_equal(quota.group, cases[i].group);
    }
    scene_clean(&scene);
  }
}

/* A trace in memory counts for the job, and a group that uses up its memory loses a process. */
static void what_memory_control_groups_allow(void **state) {
  static const struct {
    const char *groups, *limit_file, *limit, *used_file, *used, *stat_file, *stat;
    u64 bytes, more;
    bool allowed;
  } cases[] = {
      {"0::/job", "sys/fs/cgroup/job/memory.max", "64000000\n", "sys/fs/cgroup/job/memory.current",
       "1000000\n", NULL, NULL, 1000000, 65536, true},
      {"0::/job", "sys/fs/cgroup/job/memory.max", "64000000\n", "sys/fs/cgroup/job/memory.current",
       "1000000\n", NULL, NULL, 1000001, 65536, false},
      {"0::/job", "sys/fs/cgroup/job/memory.max", "64000000\n", "sys/fs/cgroup/job/memory.current",
       "47900000\n", NULL, NULL, 65536, 65536, true},
      {"0::/job", "sys/fs/cgroup/job/memory.max", "64000000\n", "sys/fs/cgroup/job/memory.current",
       "47950000\n", NULL, NULL, 65536, 65536, false},
      {"0::/job", "sys/fs/cgroup/job/memory.max", "64000000\n", "sys/fs/cgroup/job/memory.current",
       "63000000\n", "sys/fs/cgroup/job/memory.stat",
       "anon 30000000\nfile 31000000\nshmem 1000000\ninactive_file 20000000\nactive_file "
       "10000000\n",
       65536, 65536, true},
      {"0::/job", "sys/fs/cgroup/job/memory.max", "max\n", "sys/fs/cgroup/job/memory.current",
       "63000000\n", NULL, NULL, 1ull << 40, 65536, true},
      {"4:memory:/job/step", "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "64000000\n",
       "sys/fs/cgroup/memory/job/memory.usage_in_bytes", "63000000\n",
       "sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 40000000\n", 65536, 65536,
       true},
      {"4:memory:/job/step", "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "64000000\n",
       "sys/fs/cgroup/memory/job/memory.usage_in_bytes", "63000000\n", NULL, NULL, 65536, 65536,
       false},
      {"nonsense", "sys/fs/cgroup/memory.max", "1\n", "sys/fs/cgroup/memory.current", "1\n", NULL,
       NULL, 65536, 65536, true},
  };
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct scene scene;
    scene_directory(&scene);
    make_file(scene.directory, "proc/self/cgroup", cases[i].groups);
    make_file(scene.directory, cases[i].limit_file, cases[i].limit);
    make_file(scene.directory, cases[i].used_file, cases[i].used);
    if (cases[i].stat_file)
      make_file(scene.directory, cases[i].stat_file, cases[i].stat);
    tscope_memory_limit_find(scene.directory);
    assert_int_equal(tscope_memory_limit_allows(cases[i].bytes, cases[i].more), cases[i].allowed);
    scene_clean(&scene);
  }
  tscope_memory_limit_find("");
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--wake") == 0)
    return hooked_launch(1) ? 0 : 1;
  emulated = getenv("TSCOPE_EMULATOR") != NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_by_launcher),
      cmocka_unit_test(ranks_unknown_are_unknown),
      cmocka_unit_test(a_node_of_slurm_is_recorded_with_its_host),
      cmocka_unit_test(run_is_the_same_for_all_ranks_and_differs_between_runs),
      cmocka_unit_test(run_can_be_named),
      cmocka_unit_test(who_waits_finds_the_folder_of_those_it_started),
      cmocka_unit_test(sizes_and_words),
      cmocka_unit_test(nonsense_leaves_the_default),
      cmocka_unit_test(secrets_are_not_recorded),
      cmocka_unit_test(an_environment_that_is_freed_does_no_harm),
      cmocka_unit_test(secrets_of_a_command_line_are_not_recorded),
      cmocka_unit_test(other_arguments_are_recorded),
      cmocka_unit_test(a_command_line_is_recorded_unless_switched_off),
      cmocka_unit_test(commit_of_the_working_folder),
      cmocka_unit_test(directories_are_made_private),
      cmocka_unit_test(a_group_may_read_what_is_made_for_it),
      cmocka_unit_test(links_files_and_strangers_are_refused),
      cmocka_unit_test(what_control_groups_allow),
      cmocka_unit_test(what_memory_control_groups_allow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
