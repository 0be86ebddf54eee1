/* SPDX-License-Identifier: MIT
 *
 * tscope-run: runs a command, and everything that it launches, with libtscope.so preloaded, and
 * ends with the line that shows how to see the report. For the command and its caller everything
 * must be as if the command had been started directly: same standard streams, terminal, process
 * group, signals and exit status.
 */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "facts/launchers.def"
#include "format/default_directory.h"
#include "format/text_parts.h"
#include "format/values.h"
#include "scripts/launch/ask_within.h"
#include "scripts/launch/closing_line.h"
#include "scripts/launch/installed_files.h"
#include "scripts/launch/message.h"
#include "scripts/launch/run_options.def"
#include "scripts/launch/supervise.h"
#include "settings/process_environment.h"

enum { EXIT_USAGE = 2 };

static const struct option_row {
  char letter;
  const char *name, *argument, *what;
} rows[] = {
#define O(letter, name, argument, what) {letter, name, argument, what},
    TSCOPE_RUN_OPTIONS(O)
#undef O
};
enum { N_ROWS = LENGTH_OF(rows) };

static void print_usage(FILE *out) {
  fputs("usage: tscope-run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
        "\n"
        "Runs COMMAND, and whatever it launches, with tscope preloaded.\n"
        "\n",
        out);
  for (int i = 0; i < N_ROWS; i++)
    fprintf(out, "  -%c, --%s %-*s %s\n", rows[i].letter, rows[i].name,
            (int)(10 - strlen(rows[i].name)), rows[i].argument, rows[i].what);
  fputs("\n"
        "Traces go to DIR, else TSCOPE_DIR, else " TSCOPE_DEFAULT_DIRECTORY
        " or,\nif that is another user's, " TSCOPE_DEFAULT_DIRECTORY "-UID.\n"
        "\n"
        "examples:\n"
        "  tscope-run -- torchrun --nproc-per-node 8 train.py\n"
        "  tscope-run --dir /shared/traces -- srun python train.py\n"
        "  tscope-run --dir DIR -- mpirun -x LD_PRELOAD -x TSCOPE_DIR -x TSCOPE_RUN ./train\n",
        out);
}

/* The arguments of getopt_long(): the table, and the letters after the '+' that ends options at
 * COMMAND. */
static void getopt_table(struct option table[N_ROWS + 1], char letters[2 * N_ROWS + 2]) {
  *letters++ = '+';
  for (int i = 0; i < N_ROWS; i++) {
    bool has_argument = *rows[i].argument;
    table[i] = (struct option){rows[i].name, has_argument ? required_argument : no_argument, NULL,
                               rows[i].letter};
    *letters++ = rows[i].letter;
    if (has_argument)
      *letters++ = ':';
  }
  table[N_ROWS] = (struct option){0};
  *letters = '\0';
}

/* The number of arguments that were ours; exits on --help and on wrong usage. `given` by letter:
 * the argument of an option, "" if it takes none, NULL if it is not there. */
static int parse(int argc, char **argv, const char *given[UCHAR_MAX + 1]) {
  struct option table[N_ROWS + 1];
  char letters[2 * N_ROWS + 2];
  getopt_table(table, letters);
  int option;
  while ((option = getopt_long(argc, argv, letters, table, NULL)) != -1) {
    switch (option) {
    case 'h':
      print_usage(stdout);
      exit(0);
    case 'V':
      puts("tscope-run " TSCOPE_VERSION);
      exit(0);
    case '?':
      fputs("Try tscope-run --help.\n", stderr);
      exit(EXIT_USAGE);
    default:
      given[option] = optarg ? optarg : "";
    }
  }
  if (optind == argc && !given['p']) {
    print_usage(stderr);
    exit(EXIT_USAGE);
  }
  return optind;
}

/* Adds the library to LD_PRELOAD after the existing entries, because a sanitizer's runtime or an
 * allocator must stay first. The loader splits the value at spaces and colons. */
static bool set_preload(const char *library) {
  if (strpbrk(library, " :")) {
    print_message("the loader cannot preload a path with a space or colon: %s", library);
    return false;
  }
  const char *before = tscope_environment_now("LD_PRELOAD");
  if (!before)
    return setenv("LD_PRELOAD", library, 1) == 0;
  if (tscope_has_word(before, " :", library))
    return true;
  char *both = NULL;
  if (asprintf(&both, "%s:%s", before, library) < 0)
    return false;
  bool ok = setenv("LD_PRELOAD", both, 1) == 0;
  free(both);
  return ok;
}

static const struct launcher {
  const char *rank, *sign;
} launchers[] = {
#define X(name, rank, local_rank, world_size, sign) {rank, sign},
    TSCOPE_LAUNCHERS(X)
#undef X
};
enum { N_LAUNCHERS = LENGTH_OF(launchers) };

/* Whether we are one of several copies that a launcher started: then no copy may invent a name for
 * the run, and the shim finds the common identity of the run in the launcher's variables. */
static bool started_by_launcher(void) {
  for (int i = 0; i < N_LAUNCHERS; i++)
    if (tscope_environment_now(launchers[i].sign))
      return true;
  return false;
}

/* If there are several copies, only that of the first rank prints the closing line. */
static bool prints_closing_line(void) {
  for (int i = 0; i < N_LAUNCHERS; i++) {
    const char *rank = tscope_environment_now(launchers[i].rank);
    if (rank)
      return strcmp(rank, "0") == 0;
  }
  return true;
}

/* Also sets the job in which the name was given, which shows whether it is that job's own name
 * (env.def). */
static void name_run(const char *name) {
  const char *job = tscope_environment_now("SLURM_JOB_ID");
  setenv("TSCOPE_RUN", name, 1);
  setenv("TSCOPE_RUN_JOB", job ? job : "none", 1);
}

/* True if the name is new, so that no run has it yet. */
static bool set_run(const char *run) {
  if (run || tscope_environment_now("TSCOPE_RUN") || started_by_launcher()) {
    if (run)
      name_run(run);
    return false;
  }
  char name[160], when[32], host[65] = "";
  time_t now = time(NULL);
  struct tm utc;
  strftime(when, sizeof(when), "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
  gethostname(host, sizeof(host) - 1);
  host[strcspn(host, ".")] = '\0';
  snprintf(name, sizeof(name), "%s-%s-%d", when, host, (int)getpid());
  name_run(name);
  return true;
}

static void set_directory(const char *directory) {
  char *here = directory && *directory != '/' ? getcwd(NULL, 0) : NULL, *absolute = NULL;
  if (directory && (here || *directory == '/') &&
      asprintf(&absolute, "%s%s%s", here ? here : "", here ? "/" : "", directory) >= 0) {
    setenv("TSCOPE_DIR", absolute, 1);
    free(absolute);
  }
  free(here);
}

static void print_env(void) {
  static const char *const names[] = {"LD_PRELOAD", "TSCOPE_DIR", "TSCOPE_RUN", "TSCOPE_RUN_JOB"};
  for (size_t i = 0; i < LENGTH_OF(names); i++)
    if (tscope_environment_now(names[i]))
      printf("%s=%s\n", names[i], tscope_environment_now(names[i]));
}

/* What there is to ask the file system of the traces, and what it says. */
struct facts {
  const char *directory, *max_size, *command;
  struct tscope_run_folders folders; /* those that the command may write into */
  const sigset_t *mask;              /* of the command */
  bool says, new_name;
  int64_t changed_ns;
  char off[PATH_MAX + 64];
};

/* How long an answer is waited for. Making room may take its time where there is much to remove: it
 * is only asked for if the file system has just answered. */
enum { ANSWER_SECONDS = 5, ROOM_SECONDS = 60 };

static void ask_before(const void *question) {
  const struct facts *facts = question;
  char off[sizeof(facts->off)] = "";
  int64_t changed_ns = INT64_MIN;
  if (facts->says)
    is_off(facts->directory, off, sizeof(off));
  if (facts->says && !facts->new_name)
    changed_ns = runs_changed_ns(facts->directory, &facts->folders);
  printf("%d %" PRId64 "\n%s", access(facts->directory, F_OK) == 0, changed_ns, off);
}

/* Removes the oldest runs by `tscope-report --prune`. */
static void ask_for_room(const void *question) {
  const struct facts *facts = question;
  char program[PATH_MAX];
  if (!installed_program("tscope-report", program))
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, facts->mask, NULL);
  unsetenv("LD_PRELOAD");
  execl(program, "tscope-report", "--prune", "--yes", "--max-size", facts->max_size,
        facts->directory, NULL);
}

static void ask_at_end(const void *question) {
  const struct facts *facts = question;
  print_closing_line(facts->command, facts->directory, &facts->folders, facts->changed_ns,
                     facts->off);
}

/* The command starts whatever the file system does. */
static void before_the_command(struct facts *facts) {
  bool makes_room = facts->max_size && *facts->max_size;
  char answer[sizeof(facts->off) + 64];
  int there = 0;
  facts->changed_ns = INT64_MIN;
  if (!facts->says && !makes_room)
    return;
  enum asked asked = ask_within(ANSWER_SECONDS, ask_before, facts, answer, sizeof(answer));
  if (asked == ASK_NO_ANSWER)
    print_message("%s does not answer; the command runs all the same", facts->directory);
  if (asked == ASK_NOT_ASKED)
    print_message("no other process can be started to look at %s; the command runs all the same",
                  facts->directory);
  if (asked != ASK_ANSWERED)
    return;
  const char *off = strchr(answer, '\n');
  sscanf(answer, "%d %" SCNd64, &there, &facts->changed_ns);
  snprintf(facts->off, sizeof(facts->off), "%s", off ? off + 1 : "");
  if (makes_room && there &&
      ask_within(ROOM_SECONDS, ask_for_room, facts, NULL, 0) == ASK_NO_ANSWER)
    print_message("making room in %s takes too long: `tscope prune` can do it", facts->directory);
  if (*facts->off)
    print_message("%s, so the command runs without tscope", facts->off);
}

/* Where no other process can ask, this one does. */
static void say_at_end(const struct facts *facts) {
  enum asked asked = ask_within(ANSWER_SECONDS, ask_at_end, facts, NULL, 0);
  if (asked == ASK_NO_ANSWER)
    print_message("%s does not answer now; then see the report with: tscope-report %s",
                  facts->directory, facts->directory);
  else if (asked == ASK_TOLD_TO_END)
    print_message("see the report with: tscope-report %s", facts->directory);
  else if (asked == ASK_NOT_ASKED)
    ask_at_end(facts);
}

int main(int argc, char **argv) {
  const char *given[UCHAR_MAX + 1] = {0};
  char **command = argv + parse(argc, argv, given);
  sigset_t before;
  supervise_begin(&before);
  char library[PATH_MAX];
  bool found = given['l'] ? realpath(given['l'], library) && !access(library, R_OK)
                          : installed_library(library);
  if (!found && given['p']) {
    print_message("libtscope.so not found; name it with --lib");
    return 1;
  }
  if (!found)
    print_message("libtscope.so not found, so the command runs without it; name it with --lib");
  else
    set_preload(library);
  set_directory(given['d']);
  bool new_name = set_run(given['r']);
  if (given['p']) {
    print_env();
    return 0;
  }
  char standard[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  const char *directory = tscope_environment_now("TSCOPE_DIR");
  if (!directory) { /* now, as the job's processes will find it */
    tscope_directory_to_write(standard);
    directory = standard;
  }
  struct facts facts = {.directory = directory,
                        .max_size =
                            given['m'] ? given['m'] : tscope_environment_now("TSCOPE_DIR_MAX"),
                        .command = command[0],
                        .mask = &before,
                        .says = found && !given['q'] && prints_closing_line(),
                        .new_name = new_name};
  tscope_run_folders_find(&facts.folders, 0);
  before_the_command(&facts);
  int status = supervise(command, &before, facts.says);
  if (facts.says)
    say_at_end(&facts);
  return supervise_exit(status);
}
