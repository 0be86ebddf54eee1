/* SPDX-License-Identifier: MIT
 *
 * tscope-run: runs a command, and everything that it launches, with libtscope.so preloaded, and
 * ends with the line that shows how to see the report. For the command and its caller everything
 * must be as if the command had been started directly: same standard streams, terminal, process
 * group, signals and exit status.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "facts/own_file.h"
#include "format/default_directory.h"
#include "format/tscope_format.h"
#include "process/reaped.h"
#include "scripts/launch/installed_files.h"
#include "scripts/launch/run_options.def"
#include "settings/flag_words.h"

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

#define LEAST_FREE 64e6   /* bytes, as TSCOPE_DISK_FREE by default */
#define LEAST_TRACE 128e3 /* bytes: a file's header and its first chunk */

static const struct option_row {
  char letter;
  const char *name, *argument, *what;
} rows[] = {
#define O(letter, name, argument, what) {letter, name, argument, what},
    TSCOPE_RUN_OPTIONS(O)
#undef O
};
enum { N_ROWS = sizeof(rows) / sizeof(*rows) };

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

__attribute__((format(printf, 1, 2))) static void print_message(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("tscope: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
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
  const char *before = getenv("LD_PRELOAD");
  if (!before || !*before)
    return setenv("LD_PRELOAD", library, 1) == 0;
  if (strstr(before, library))
    return true;
  char *both = NULL;
  if (asprintf(&both, "%s:%s", before, library) < 0)
    return false;
  bool ok = setenv("LD_PRELOAD", both, 1) == 0;
  free(both);
  return ok;
}

/* Whether we are one of several copies that a launcher started: then no copy may invent a name for
 * the run, and the shim finds the common identity of the run in the launcher's variables. */
static bool started_by_launcher(void) {
  static const char *const signs[] = {"SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                      "PMIX_RANK",     "TORCHELASTIC_RUN_ID",  "RANK"};
  for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
    if (getenv(signs[i]))
      return true;
  return false;
}

/* If there are several copies, only that of the first rank prints the closing line. */
static bool prints_closing_line(void) {
  static const char *const ranks[] = {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                      "PMIX_RANK", "RANK"};
  for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++) {
    const char *rank = getenv(ranks[i]);
    if (rank)
      return strcmp(rank, "0") == 0;
  }
  return true;
}

/* Also sets the job in which the name was given, which shows whether it is that job's own name
 * (env.def). */
static void name_run(const char *name) {
  const char *job = getenv("SLURM_JOB_ID");
  setenv("TSCOPE_RUN", name, 1);
  setenv("TSCOPE_RUN_JOB", job && *job ? job : "none", 1);
}

static void set_run(const char *run) {
  if (run) {
    name_run(run);
  } else if (!getenv("TSCOPE_RUN") && !started_by_launcher()) {
    char name[160], when[32], host[65] = "";
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    snprintf(name, sizeof(name), "%s-%s-%d", when, host, (int)getpid());
    name_run(name);
  }
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
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (getenv(names[i]))
      printf("%s=%s\n", names[i], getenv(names[i]));
}

/* The witness answers one question: was a signal sent to the whole process group (a terminal's
 * Ctrl-C, timeout(1), a batch system that signals every process) or to tscope-run alone? It is a
 * process that only keeps signals pending. If a signal that the command already got were forwarded,
 * it would get it twice, and a second SIGTERM ends torchrun's clean-up early. */
static void run_witness(int channel, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(0);
  int number;
  while (read(channel, &number, sizeof(number)) == sizeof(number)) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    int seen = sigtimedwait(&set, NULL, &(struct timespec){0}) == number;
    if (write(channel, &seen, sizeof(seen)) != sizeof(seen))
      break;
  }
  _exit(0);
}

/* The channel to a new witness, -1 if it cannot be started. Call with signals blocked. */
static int start_witness(void) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    return -1;
  pid_t self = getpid();
  pid_t witness = fork();
  if (witness == 0) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
      close(fd); /* a reader of our output must not wait for the witness */
    close(ends[0]);
    run_witness(ends[1], self);
  }
  close(ends[1]);
  if (witness < 0) {
    close(ends[0]);
    return -1;
  }
  return ends[0];
}

static bool sent_to_group(int channel, int number) {
  nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); /* until all members have it */
  int seen = 0;
  return channel >= 0 &&
         send(channel, &number, sizeof(number), MSG_NOSIGNAL) == (ssize_t)sizeof(number) &&
         read(channel, &seen, sizeof(seen)) == (ssize_t)sizeof(seen) && seen;
}

/* Runs the command and returns its wait status. */
static int supervise(char **command) {
  static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
  sigset_t watched, before;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (size_t i = 0; i < sizeof(forwarded) / sizeof(*forwarded); i++)
    sigaddset(&watched, forwarded[i]);
  struct sigaction child_action = {.sa_handler = SIG_DFL}, inherited;
  sigaction(SIGCHLD, &child_action, &inherited);
  sigprocmask(SIG_BLOCK, &watched, &before);

  int witness = start_witness();
  pid_t child = fork();
  if (child == 0) {
    sigaction(SIGCHLD, &inherited, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(command[0], command);
    int error = errno;
    print_message("cannot run %s: %s", command[0], strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
  }
  if (child < 0) {
    print_message("cannot start a process: %s; running the command unobserved by tscope-run",
                  strerror(errno));
    sigaction(SIGCHLD, &inherited, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(command[0], command);
    exit(EXIT_CANNOT_RUN);
  }
  for (;;) {
    int status;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        tscope_reaped(child, WTERMSIG(status));
      return status;
    }
    int number = sigwaitinfo(&watched, NULL);
    if (number > 0 && number != SIGCHLD && !sent_to_group(witness, number))
      kill(child, number);
  }
}

/* Traces, and whose. A rank that was started again has several. */
struct traces {
  uint32_t *ranks; /* [files] TSCOPE_UNKNOWN_RANK */
  size_t files;
};

static void add_trace(struct traces *traces, uint32_t rank) {
  uint32_t *more = realloc(traces->ranks, (traces->files + 1) * sizeof(*more));
  if (!more)
    return;
  traces->ranks = more;
  traces->ranks[traces->files++] = rank;
}

static int by_number(const void *left, const void *right) {
  const uint32_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

/* Those whose rank is not known count one each. */
static size_t count_ranks(struct traces *traces) {
  size_t n = 0;
  if (traces->files)
    qsort(traces->ranks, traces->files, sizeof(*traces->ranks), by_number);
  for (size_t i = 0; i < traces->files; i++)
    n += i == 0 || traces->ranks[i] != traces->ranks[i - 1] ||
         traces->ranks[i] == TSCOPE_UNKNOWN_RANK;
  return n;
}

/* Finds the traces of `run` (of any run when NULL) directly in `directory` and one level below. */
static void find_traces(const char *directory, const char *run, int depth, struct traces *traces) {
  DIR *folder = opendir(directory);
  if (!folder)
    return;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[PATH_MAX];
    if (entry->d_name[0] == '.' ||
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >= (int)sizeof(path))
      continue;
    const char *suffix = strrchr(entry->d_name, '.');
    if (suffix && strcmp(suffix, TSCOPE_FILE_SUFFIX) == 0) {
      struct tscope_file_header header;
      int fd = tscope_open_own(AT_FDCWD, path, O_RDONLY);
      if (fd >= 0 && read(fd, &header, sizeof(header)) == (ssize_t)sizeof(header) &&
          (!run || strncmp(header.run, run, sizeof(header.run) - 1) == 0))
        add_trace(traces, header.rank);
      if (fd >= 0)
        close(fd);
    } else if (depth > 0) {
      find_traces(path, run, depth - 1, traces);
    }
  }
  closedir(folder);
}

/* Whether a shell finds exactly this file under `name`. */
static bool is_first_on_path(const char *name, const char *file) {
  char *folders = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = folders;
  bool same = false, seen = false;
  for (const char *folder; !seen && (folder = strsep(&rest, ":"));) {
    char candidate[2 * PATH_MAX], real[PATH_MAX];
    snprintf(candidate, sizeof(candidate), "%s/%s", *folder ? folder : ".", name);
    seen = access(candidate, X_OK) == 0;
    same = seen && realpath(candidate, real) && strcmp(real, file) == 0;
  }
  free(folders);
  return same;
}

/* `word` quoted so that a shell takes it as one word. The caller frees it. */
static char *shell_word(const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./:=@%+,";
  size_t length = strlen(word);
  if (length && strspn(word, plain) == length)
    return strdup(word);
  char *quoted = malloc(4 * length + 3), *to = quoted;
  if (!quoted)
    return NULL;
  *to++ = '\'';
  for (; *word; word++)
    to = *word == '\'' ? stpcpy(to, "'\\''") : (*to = *word, to + 1);
  strcpy(to, "'");
  return quoted;
}

/* The command that shows the report, quoted for a shell. The caller frees it. */
static char *report_command(const char *directory, const char *run) {
  char program[PATH_MAX];
  if (!installed_program("tscope-report", program) || is_first_on_path("tscope-report", program))
    strcpy(program, "tscope-report");
  char *words[] = {shell_word(program), shell_word(directory), run ? shell_word(run) : strdup("")};
  char *command = NULL;
  if (!words[0] || !words[1] || !words[2] ||
      asprintf(&command, "%s %s%s%s", words[0], words[1], run ? " --run " : "", words[2]) < 0)
    command = NULL;
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    free(words[i]);
  return command;
}

/* Some file systems, such as /proc, say that one may write, and refuse each new folder. */
static bool folders_can_be_made(const char *folder) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/.tscope-%d", folder, (int)getpid());
  return mkdir(path, 0700) == 0 && rmdir(path) == 0;
}

/* Why no trace can be written there, in `why`; false if nothing speaks against it. The shim decides
 * by itself, in each process: this is for whoever starts the job. */
static bool cannot_write(const char *directory, char *why, size_t bytes) {
  char path[PATH_MAX];
  struct stat facts;
  struct statvfs disk;
  snprintf(path, sizeof(path), "%s", directory);
  bool is_there = lstat(path, &facts) == 0;
  if (is_there) {
    if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid()) {
      snprintf(why, bytes, "%s %s", path,
               S_ISLNK(facts.st_mode)   ? "is a symbolic link, and what it points to is not used"
               : S_ISDIR(facts.st_mode) ? "belongs to another user"
                                        : "is not a directory");
      return true;
    }
  } else { /* it will be made: then the folder above it must be there, or be made too */
    for (char *slash; access(path, F_OK) != 0 && (slash = strrchr(path, '/'));)
      slash[slash == path] = '\0';
  }
  if (access(path, W_OK | X_OK) != 0 || (!is_there && !folders_can_be_made(path))) {
    snprintf(why, bytes, "%s cannot be written to (%s)", path, strerror(errno));
    return true;
  }
  if (statvfs(path, &disk) != 0 || disk.f_blocks == 0)
    return false;
  double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
  double margin = (double)disk.f_blocks * (double)disk.f_frsize / 20;
  margin = margin < LEAST_FREE ? margin : LEAST_FREE;
  if (free_bytes > margin + LEAST_TRACE)
    return false;
  snprintf(why, bytes, "the disk of %s is full: %.1f MB are free", path, free_bytes / 1e6);
  return true;
}

static bool is_switched_off(void) {
  const char *value = getenv("TSCOPE");
  bool on = true;
  return value && tscope_read_flag(value, &on) && !on;
}

/* Why nothing is recorded, in `why`; false if nothing speaks against it. */
static bool is_off(const char *directory, char *why, size_t bytes) {
  if (!is_switched_off())
    return cannot_write(directory, why, bytes);
  snprintf(why, bytes, "the environment has TSCOPE=%s", getenv("TSCOPE"));
  return true;
}

/* Removes the oldest runs by `tscope-report --prune`; what that says goes to standard error. */
static void hold_bound(const char *directory, const char *max_size) {
  char program[PATH_MAX];
  if (!max_size || !*max_size || access(directory, F_OK) != 0 ||
      !installed_program("tscope-report", program))
    return;
  pid_t child = fork();
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    unsetenv("LD_PRELOAD");
    execl(program, "tscope-report", "--prune", "--yes", "--max-size", max_size, directory, NULL);
    _exit(EXIT_CANNOT_RUN);
  }
  int status;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
}

/* `off`: why nothing could be written when the command began, "" if it could. */
static void closing_line(const char *command, const char *directory, char *off, size_t off_bytes) {
  const char *run = getenv("TSCOPE_RUN");
  struct traces traces = {0};
  find_traces(directory, run, 1, &traces);
  size_t ranks = count_ranks(&traces);
  char *report = report_command(directory, run), again[48] = "";
  if (ranks < traces.files)
    snprintf(again, sizeof(again), " (%zu processes)", traces.files);
  if (ranks)
    print_message("%zu rank%s recorded%s; see the report with: %s", ranks, ranks == 1 ? "" : "s",
                  again, report ? report : "tscope-report");
  else if (*off || is_off(directory, off, off_bytes))
    print_message("tscope was off: %s%s", off,
                  is_switched_off() ? "" : "; give --dir another directory");
  else
    print_message(
        "no trace here yet: %s made no NCCL, CUDA or gloo call on this host, or ran what does "
        "without LD_PRELOAD (as sudo and containers do: put tscope run inside), or has only queued "
        "the job; then, when it has run: %s",
        command, report ? report : "tscope-report");
  free(report);
  free(traces.ranks);
}

/* Ends in the same way as the command: same exit status, or by the same signal. */
static int exit_like(int status) {
  if (!WIFSIGNALED(status))
    return WEXITSTATUS(status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* only the core dump of the command is useful */
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t all;
  sigfillset(&all);
  sigaction(WTERMSIG(status), &action, NULL);
  raise(WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  return 128 + WTERMSIG(status);
}

int main(int argc, char **argv) {
  const char *given[UCHAR_MAX + 1] = {0};
  char **command = argv + parse(argc, argv, given);
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
  set_run(given['r']);
  if (given['p']) {
    print_env();
    return 0;
  }
  char standard[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  const char *directory = getenv("TSCOPE_DIR");
  if (!directory || !*directory) { /* now, as the job's processes will find it */
    tscope_directory_to_write(standard);
    directory = standard;
  }
  hold_bound(directory, given['m'] ? given['m'] : getenv("TSCOPE_DIR_MAX"));
  char off[PATH_MAX + 64] = "";
  if (found && is_off(directory, off, sizeof(off)) && !given['q'] && prints_closing_line())
    print_message("%s, so the command runs without tscope", off);
  int status = supervise(command);
  if (found && !given['q'] && prints_closing_line())
    closing_line(command[0], directory, off, sizeof(off));
  return exit_like(status);
}
