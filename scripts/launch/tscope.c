/* SPDX-License-Identifier: MIT
 *
 * tscope: one name for all commands. `tscope run ...` becomes `tscope-run ...`, in the same
 * process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/values.h"
#include "scripts/launch/commands.def"
#include "scripts/launch/installed_files.h"

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static const struct command {
  const char *name, *program, *first, *what;
} commands[] = {
#define C(name, program, first, what) {name, program, first, what},
    TSCOPE_COMMANDS(C)
#undef C
};
enum { N_COMMANDS = LENGTH_OF(commands) };

static void help(FILE *out) {
  fputs("usage: tscope COMMAND [ARGUMENT]...\n\n", out);
  for (int i = 0; i < N_COMMANDS; i++)
    fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].what);
  fputs("\n"
        "`tscope COMMAND --help` says more. The two that most people use:\n"
        "  tscope run -- torchrun --nproc-per-node 8 train.py\n"
        "  tscope report\n",
        out);
}

static const struct command *find_command(const char *name) {
  for (int i = 0; i < N_COMMANDS; i++)
    if (strcmp(name, commands[i].name) == 0)
      return &commands[i];
  return NULL;
}

/* Returns only if the program cannot be started, with an exit status. */
static int execute(const struct command *command, int argc, char **argv) {
  char path[PATH_MAX];
  if (!installed_program(command->program, path))
    snprintf(path, sizeof(path), "%s", command->program); /* then execvp() looks in PATH */
  char **arguments = calloc((size_t)argc + 3, sizeof(*arguments));
  if (!arguments)
    return EXIT_CANNOT_RUN;
  int n = 0;
  arguments[n++] = (char *)command->program;
  if (command->first)
    arguments[n++] = (char *)command->first;
  memcpy(arguments + n, argv, (size_t)argc * sizeof(*argv));
  execvp(path, arguments);
  int error = errno;
  fprintf(stderr, "tscope: cannot run %s: %s; is the installation complete?\n", path,
          strerror(error));
  free(arguments);
  return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return EXIT_USAGE;
  }
  if (strcmp(argv[1], "--version") == 0) {
    puts("tscope " TSCOPE_VERSION);
    return 0;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      (strcmp(argv[1], "help") == 0 && argc == 2)) {
    help(stdout);
    return 0;
  }
  if (strcmp(argv[1], "help") == 0 && find_command(argv[2]))
    return execute(find_command(argv[2]), 1, (char *[]){(char *)"--help"});
  const struct command *command = find_command(argv[1]);
  if (!command) {
    fprintf(stderr, "tscope: there is no command '%s'; tscope --help lists them\n", argv[1]);
    return EXIT_USAGE;
  }
  return execute(command, argc - 2, argv + 2);
}
