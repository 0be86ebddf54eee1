/* SPDX-License-Identifier: MIT
 *
 * tscope-reduce-mpi: `tscope reduce` on all nodes of an MPI job at once, without a shared folder.
 * tscope-reduce starts it under mpirun. On each node it runs tscope-reduce twice, and in between
 * gives the facts of each node to all; then the first process writes what the report reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/folders.h"
#include "base/hash.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "import/read_values.h"
#include "import/summary/summary_file.h"
#include "programs/mpi_library.h"
#include "programs/reduce_options.h"

#define fail(...) print_problem("tscope-reduce", __VA_ARGS__)
#define OWN "%s/own%u"
#define OF_ALL "%s/all%u"
extern char **environ;
enum { PASSES = 2 };

/* What the processes know of each other. */
struct member {
  char host[64];
  u64 place; /* hash of host and folder: of those with one place, the first reduces it */
  u64 bytes; /* of the summaries that it has made in this pass */
};

struct node {
  struct mpi mpi;
  struct reduce_options options;
  char *const *arguments; /* of the command line, without the program */
  u32 n_arguments;
  char folder[PATH_MAX];  /* of this process alone */
  struct member *members; /* [mpi.size] */
  bool reduces;
  struct arena arena;
};

static const char *path_of_reduce(struct node *node) {
  char program[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);
  program[MAX(length, 0)] = '\0';
  return arena_printf(&node->arena, "%s/tscope-reduce", dirname(program));
}

/* Its output is only of interest if it writes where the user said. 0, or its status. */
static int run_reduce(struct node *node, const char **arguments, bool heard) {
  const char *path = path_of_reduce(node);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!heard)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child;
  int status = 0;
  int error =
      posix_spawn(&child, path, &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    return fail("%s cannot be run: %s", path, strerror(error));
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_BAD;
}

/* The command line once more, with another place for what is written. */
static int reduce_here(struct node *node, u32 pass) {
  const char **arguments =
      arena_array(&node->arena, size_sum(node->n_arguments, 8), sizeof(char *));
  u32 n = 0;
  arguments[n++] = "tscope-reduce";
  FOR_EACH(node->arguments, node->n_arguments, argument)
    arguments[n++] = *argument;
  arguments[n++] = "--output"; /* the last one counts */
  arguments[n++] = arena_printf(&node->arena, OWN, node->folder, pass);
  if (pass > 0) {
    arguments[n++] = "--with";
    arguments[n++] = arena_printf(&node->arena, OF_ALL, node->folder, pass - 1);
  }
  return run_reduce(node, arguments, false);
}

struct made {
  u8 *data;
  size_t bytes;
};

static void read_made(void *user, const char *path) {
  struct made *made = user;
  if (!made->data && whole_file_read(path, &made->data, &made->bytes) != 0)
    fail("%s cannot be read", path);
}

/* The one file that a pass has left; nothing if none. */
static struct made made_here(struct node *node, u32 pass) {
  struct made made = {0};
  folder_visit(arena_printf(&node->arena, OWN, node->folder, pass), 0, read_made, &made);
  return made;
}

static int keep(struct node *node, u32 pass, int from, const u8 *data, u64 bytes) {
  const char *folder = arena_printf(&node->arena, OF_ALL, node->folder, pass);
  mkdir(folder, 0700);
  const char *path = arena_printf(&node->arena, "%s/%d" SUMMARY_SUFFIX, folder, from);
  struct output_file file;
  int error = output_file_open(&file, path);
  if (!error) {
    fwrite(data, 1, bytes, file.out);
    error = output_file_close(&file, 0);
  }
  return error ? fail("%s cannot be written: %s", path, strerror(-error)) : STATUS_OK;
}

/* One pass, and its result in the folders of those who need it: after the first all that reduce,
 * after the second the first process. Not STATUS_OK if one cannot be kept. */
static int make_pass(struct node *node, u32 pass) {
  int own = node->mpi.rank, status = STATUS_OK;
  struct made made = {0};
  if (node->reduces && reduce_here(node, pass) == STATUS_OK)
    made = made_here(node, pass);
  struct member self = node->members[own];
  self.bytes = made.bytes;
  mpi_share(&self, node->members, sizeof(self));
  for (int from = 0; from < node->mpi.size; from++) {
    u64 its = node->members[from].bytes;
    bool here = from == own, wanted = pass == 0 ? node->reduces || own == 0 : own == 0;
    if (!its)
      continue;
    u8 *room = here ? made.data : pass == 0 || own == 0 ? memory_array(its, 1) : NULL;
    if (pass == 0)
      mpi_give_to_all(from, room, its);
    else if (here && own != 0)
      mpi_send(0, room, its);
    else if (!here && own == 0)
      mpi_receive(from, room, its);
    if (wanted)
      status = MAX(keep(node, pass, from, room, its), status);
    if (!here)
      free(room);
  }
  free(made.data);
  return status;
}

/* Who reduces what: one process of those on a host that look into one folder. */
static void meet(struct node *node) {
  struct member self = {0};
  char place[PATH_MAX];
  gethostname(self.host, sizeof(self.host) - 1);
  if (!realpath(node->options.paths[0], place))
    snprintf(place, sizeof(place), "%s", node->options.paths[0]);
  self.place = hash_text(hash_text(HASH_SEED, self.host), place);
  node->members = arena_array(&node->arena, (size_t)node->mpi.size, sizeof(self));
  mpi_share(&self, node->members, sizeof(self));
  node->reduces = ALL(node->members, (u32)node->mpi.rank, member, member->place != self.place);
}

/* A node whose process came to nothing. Another process of the same place stands for it. */
static bool left_nothing(const struct node *node, int member) {
  return !ANY_NUMBER(0, node->mpi.size, i,
                     node->members[i].place == node->members[member].place &&
                         (i < (u32)member || node->members[i].bytes));
}

static int write_result(struct node *node, const bool *nothing) {
  for (int i = 0; i < node->mpi.size; i++)
    if (nothing[i])
      fail("%s has left no summary: its ranks are missing", node->members[i].host);
  const char *first = arena_printf(&node->arena, OF_ALL, node->folder, 0u);
  const char *second = arena_printf(&node->arena, OF_ALL, node->folder, 1u);
  if (access(first, R_OK) != 0)
    return fail("no node has left a summary");
  mkdir(second, 0700);
  const char *arguments[] = {"tscope-reduce",      "--merge", first, second, "--output",
                             node->options.output, NULL};
  return run_reduce(node, arguments, true);
}

static void remove_folder(struct node *node, const char *format, u32 pass) {
  const char *folder =
      format ? arena_printf(&node->arena, "%s/%s%u", node->folder, format, pass) : node->folder;
  folder_remove(folder);
}

static int reduce_together(struct node *node) {
  int status = STATUS_OK;
  snprintf(node->folder, sizeof(node->folder), "%s/tscope-reduce-XXXXXX", folder_for_a_time());
  if (!mkdtemp(node->folder)) { /* it still takes part, without a file: the others wait for it */
    status = fail("%s cannot be made: %s", node->folder, strerror(errno));
    snprintf(node->folder, sizeof(node->folder), "/dev/null");
  }
  meet(node);
  bool *nothing = arena_array(&node->arena, (size_t)node->mpi.size, sizeof(bool));
  for (u32 pass = 0; pass < PASSES; pass++) {
    status = MAX(make_pass(node, pass), status);
    for (int i = 0; i < node->mpi.size && pass == 0; i++)
      nothing[i] = left_nothing(node, i);
  }
  if (node->mpi.rank == 0)
    status = MAX(write_result(node, nothing), status);
  for (u32 pass = 0; pass < PASSES; pass++) {
    remove_folder(node, "own", pass);
    remove_folder(node, "all", pass);
  }
  remove_folder(node, NULL, 0);
  return status;
}

/* A launcher may say that there are others (as Slurm does) where no MPI is. */
static int reduce_alone(struct node *node, char **argv, const char *why) {
  fail("%s; each node is reduced by itself", why);
  execv(path_of_reduce(node), argv);
  return fail("%s cannot be run: %s", path_of_reduce(node), strerror(errno));
}

int main(int argc, char **argv) {
  struct node node = {0};
  char why[512];
  char **given = arena_array(&node.arena, size_sum((size_t)argc, 1), sizeof(*given));
  memcpy(given, argv, ((size_t)argc + 1) * sizeof(*given)); /* the parser moves them */
  node.arguments = given + 1;
  node.n_arguments = (u32)argc - 1;
  if (!reduce_options_parse(argc, argv, &node.options, why, sizeof(why)))
    return fail("%s", why);
  bool together = mpi_begin(&node.mpi, why, sizeof(why));
  unsetenv("OMPI_COMM_WORLD_SIZE"); /* what it runs is no process of MPI */
  unsetenv("PMI_SIZE");
  if (!together)
    return reduce_alone(&node, given, why);
  int status = reduce_together(&node);
  mpi_end();
  arena_release(&node.arena);
  return status;
}
