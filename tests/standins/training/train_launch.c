/* SPDX-License-Identifier: MIT
 *
 * The options of the training program, its processes (one for each rank), and how they find each
 * other.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "train.h"

const struct options options_default = {
#define DEFAULT(type, field, name, fallback, help) .field = fallback,
    TRAIN_OPTIONS(DEFAULT)
#undef DEFAULT
};

int environment_number(const char *name, int fallback) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : fallback;
}

static void help(void) {
  printf("usage: train [options]\n\nA training job on the stand-in cluster.\n\n");
#define HELP(type, field, name, fallback, text)                                                    \
  printf("  %-18s %s (%g)\n", name, text, (double)(fallback));
  TRAIN_OPTIONS(HELP)
#undef HELP
  printf("  %-18s %s\n", "--slow-link", "A-B:F[,...]: the link between ranks A and B runs at F");
  printf("  %-18s %s", "--family", "whose kernels reduce instead of NCCL's, with --loss 0: ");
  family_names();
  printf("\n  %-18s %s\n", "--log", "directory for the simulator's op logs and truth.json");
}

static bool set_option(struct options *options, const char *name, const char *value) {
#define SET(type, field, option, fallback, text)                                                   \
  if (!strcmp(name, option)) {                                                                     \
    options->field = (type)atof(value);                                                            \
    return true;                                                                                   \
  }
  TRAIN_OPTIONS(SET)
#undef SET
  if (!strcmp(name, "--slow-link"))
    options->slow_link = value;
  else if (!strcmp(name, "--family"))
    options->family = value;
  else if (!strcmp(name, "--log"))
    options->log = value;
  else
    return false;
  return true;
}

static bool in_range(const struct options *options) {
  return options->ranks > 0 && options->steps > 0 && options->layers > 0 && options->buckets > 0 &&
         options->buckets <= MAX_BUCKETS && options->ahead >= 0 && options->ahead <= MAX_AHEAD &&
         options->tensor > 0 && options->pipeline > 0 && options->micro_batches > 0;
}

int options_parse(struct options *options, int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    if (!strcmp(argv[i], "--help")) {
      help();
      return 0;
    }
    if (i + 1 == argc || !set_option(options, argv[i], argv[i + 1])) {
      fprintf(stderr, "train: cannot make sense of %s; see train --help\n", argv[i]);
      return 2;
    }
  }
  if (!in_range(options)) {
    fprintf(stderr, "train: a number is out of range; see train --help\n");
    return 2;
  }
  return -1;
}

/* Rank 0 gives the unique id to the others through a file, as jobs of torchrun do through a store.
 */
static void rendezvous_path(char *path, size_t bytes) {
  const char *folder = getenv("STANDIN_RENDEZVOUS"), *port = getenv("MASTER_PORT");
  if (folder)
    snprintf(path, bytes, "%s/nccl-id", folder);
  else
    snprintf(path, bytes, "/tmp/standin-nccl-id-%u-%s", (unsigned)geteuid(), port ? port : "0");
}

static void publish_id(const char *path, const ncclUniqueId *id) {
  char unfinished[4200];
  snprintf(unfinished, sizeof(unfinished), "%s.%d", path, getpid());
  int file = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || write(file, id, sizeof(*id)) != (ssize_t)sizeof(*id) ||
      rename(unfinished, path) != 0) {
    perror(path);
    exit(1);
  }
  close(file);
}

static bool read_id(const char *path, ncclUniqueId *id) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  bool whole = read(file, id, sizeof(*id)) == (ssize_t)sizeof(*id);
  close(file);
  return whole;
}

ncclUniqueId rendezvous(const struct rank *rank) {
  char path[4096];
  ncclUniqueId id;
  rendezvous_path(path, sizeof(path));
  if (rank->rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    publish_id(path, &id);
    return id;
  }
  while (!read_id(path, &id)) {
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
  return id;
}

static void set_number(const char *name, int value, bool replace) {
  char text[16];
  snprintf(text, sizeof(text), "%d", value);
  setenv(name, text, replace);
}

static void set_cluster(const struct options *options) {
  char text[32];
  snprintf(text, sizeof(text), "%g", options->link_gbps);
  setenv("STANDIN_LINK_GBPS", text, 0);
  snprintf(text, sizeof(text), "%g", options->latency_us);
  setenv("STANDIN_LATENCY_US", text, 0);
  if (options->slow_link)
    setenv("STANDIN_SLOW_LINK", options->slow_link, 1);
  if (options->log)
    setenv("STANDIN_LOG", options->log, 1);
}

static pid_t children[1024];
static int n_children;

static void signal_children(int signal) {
  for (int i = 0; i < n_children; i++)
    if (children[i] > 0)
      kill(children[i], signal);
}

/* Returns the status of the first rank that failed. Then ends the others, as a launcher does. */
static int wait_for_ranks(void) {
  int result = 0, status;
  pid_t pid;
  while ((pid = wait(&status)) > 0 || errno == EINTR) {
    if (pid <= 0)
      continue;
    for (int i = 0; i < n_children; i++)
      if (children[i] == pid)
        children[i] = 0;
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code && !result) {
      result = code;
      nanosleep(&(struct timespec){.tv_nsec = 200000000},
                NULL); /* a launcher notices it only after a while */
      signal_children(SIGTERM);
    }
  }
  return result;
}

static int write_truth(const char *directory) {
  pid_t pid = fork();
  if (pid == 0) {
    unsetenv("LD_PRELOAD");
    execlp("python3", "python3", TRAIN_TRUTH, directory, (char *)NULL);
    perror("python3");
    _exit(127);
  }
  int status;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int launch_ranks(const struct options *options, char **argv) {
  char folder[] = "/tmp/standin-train-XXXXXX", path[64];
  if (options->ranks > (int)(sizeof(children) / sizeof(*children)) || !mkdtemp(folder)) {
    perror("train");
    return 1;
  }
  if (options->log)
    mkdir(options->log, 0700);
  set_cluster(options);
  setenv("STANDIN_RENDEZVOUS", folder, 1);
  set_number("WORLD_SIZE", options->ranks, true);
  signal(SIGTERM, signal_children);
  signal(SIGINT, signal_children);
  for (int rank = 0; rank < options->ranks; rank++) {
    set_number("RANK", rank, true);
    set_number("LOCAL_RANK", rank, true);
    children[n_children] = fork();
    if (children[n_children] == 0) {
      execv("/proc/self/exe", argv);
      perror(argv[0]);
      _exit(127);
    }
    n_children++;
  }
  int result = wait_for_ranks();
  snprintf(path, sizeof(path), "%s/nccl-id", folder);
  unlink(path);
  rmdir(folder);
  return result == 0 && options->log ? write_truth(options->log) : result;
}
