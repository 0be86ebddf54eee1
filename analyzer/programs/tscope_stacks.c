/* SPDX-License-Identifier: MIT
 *
 * tscope-stacks: where the processes of a job are now, as one tree of stacks.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyses/stalls/stall_words.h"
#include "attach/attached.h"
#include "attach/launcher_stacks.h"
#include "attach/refused.h"
#include "import/tscope/load_traces.h"
#include "model/model.h"

enum { LINES_MOST = 10000 };

static const char help[] =
    "usage: tscope-stacks [--native] [--frames] PID... | DIRECTORY\n"
    "Shows where processes are: their Python stacks, what their threads wait for, which one holds\n"
    "the GIL. It stops no thread, except with --native: then each for some ten microseconds.\n"
    "\n"
    "  --native   also show C and C++ frames, of all threads\n"
    "  --frames   instead of the tree, one line for each frame of each thread, innermost first:\n"
    "             number, thread, file, line, function, separated by tabs; with --native also\n"
    "             the library, empty for Python frames, and no frame is left out\n"
    "  PID        a process of yours on this host\n"
    "  DIRECTORY  with traces: the ranks of the newest run that run on this host now; for the\n"
    "             others, what they recorded when they stood still\n"
    "\n"
    "exit status: 0; 1 if nothing could be read; 2 if the command line is wrong.\n";

/* One process, by its rank or its number. */
struct process_stacks {
  u32 number;
  const char *source;  /* "now", "written" */
  const char *refused; /* why it was not read now although it runs here; NULL */
  pid_t through;       /* the tscope-run that read it for us; 0 */
  struct rank_stall stacks;
  struct native_outcome native;
};

struct page {
  struct arena arena;
  const char *unit; /* "rank", "process" */
  bool frames;      /* --frames */
  bool native;      /* --native */
  struct process_stacks *at;
  u32 n;
};

/* The result of the request for native frames: how long the process was stopped, and what is not
 * known.
 */
static void put_native(const struct process_stacks *one) {
  const struct native_outcome *outcome = &one->native;
  if (strcmp(one->source, "now") != 0)
    printf("    no native frames: its own record has only Python frames\n");
  else if (outcome->why_none)
    printf("    no native frames: %s\n", outcome->why_none);
  else
    printf("    %u threads were stopped one after another: %.0f us in all, %.0f us the longest\n",
           outcome->taken, (double)outcome->all_ns / 1e3, (double)outcome->longest_ns / 1e3);
  if (outcome->stuck && !outcome->why_none)
    printf("    %u more wait in the kernel, uninterruptible, and did not stop: no native frames of "
           "these\n",
           outcome->stuck);
  if (outcome->refused && !outcome->why_none)
    printf("    %u more could not be stopped: no native frames of these\n", outcome->refused);
  if (outcome->gone && !outcome->why_none)
    printf("    %u more ended before they stopped\n", outcome->gone);
  if (outcome->cut)
    printf("    threads with unknown outer frames: %u\n", outcome->cut);
  if (outcome->unmatched)
    printf("    threads where native frames between Python frames are not known: %u; only those "
           "inside the innermost Python frame are shown\n",
           outcome->unmatched);
}

static void put_process(struct page *page, const struct process_stacks *one) {
  struct stalled_rank described = {0};
  if (!stall_describe(&page->arena, &one->stacks, NULL, &described))
    return;
  printf("%s %u  %s  %s%s%s\n", page->unit, one->number, one->source,
         stall_doing_words[described.what], described.words && *described.words ? ": " : "",
         described.words ? described.words : "");
  if (one->through)
    printf("    read through tscope-run (process %d), since the kernel does not let us\n",
           (int)one->through);
  if (one->refused)
    printf("    it runs, but could not be read now: %s\n", one->refused);
  if (one->stacks.no_python)
    printf("    no Python frames: %s\n",
           *one->stacks.no_python ? one->stacks.no_python : "this process has no Python");
  if (page->native)
    put_native(one);
}

static int put_tree(struct page *page) {
  u64 threads = 0;
  u32 n = 0, n_lines = 0;
  struct stack_tree tree;
  for (u32 i = 0; i < page->n; i++)
    threads += page->at[i].stacks.n_threads;
  struct tree_stack *stacks = arena_array(&page->arena, threads + 1, sizeof(*stacks));
  for (u32 i = 0; i < page->n && stacks; i++)
    n += stall_stacks(&page->at[i].stacks, page->at[i].number, stacks + n);
  if (!stacks || stack_tree_make(&page->arena, stacks, n, &tree) < 0)
    return -ENOMEM;
  struct stack_line *lines = stack_tree_lines(&page->arena, &tree, LINES_MOST, &n_lines);
  for (u32 i = 0; lines && i < n_lines; i++)
    printf("%s%*s%s %s  %s\n", i ? "" : "\n", (int)(2 * lines[i].depth), "", page->unit,
           lines[i].ranks, lines[i].text);
  return lines ? 0 : -ENOMEM;
}

static int put_frames(const struct page *page) {
  for (u32 i = 0; page->native && i < page->n; i++)
    if (page->at[i].native.why_none)
      fprintf(stderr, "tscope-stacks: %s %u: no native frames: %s\n", page->unit,
              page->at[i].number, page->at[i].native.why_none);
  for (u32 i = 0; i < page->n; i++)
    for (u32 t = 0; t < page->at[i].stacks.n_threads; t++) {
      const struct stalled_thread *thread = &page->at[i].stacks.threads[t];
      for (u32 f = 0; f < thread->n_frames; f++) {
        const struct call_frame *frame = thread->frames[f];
        printf("%u\t%u\t%s\t%u\t%s", page->at[i].number, thread->tid,
               frame->file ? frame->file : "", frame->line, frame->function ? frame->function : "");
        if (page->native)
          printf("\t%s", frame->library ? frame->library : "");
        putchar('\n');
      }
    }
  return 0;
}

static int print_page(struct page *page) {
  if (page->frames)
    return put_frames(page);
  for (u32 i = 0; i < page->n; i++)
    put_process(page, &page->at[i]);
  return put_tree(page);
}

/* Whether the process `pid` of this host is the one that writes this trace. */
static bool writes_trace(u32 pid, const char *path) {
  char maps_path[64], line[PATH_MAX + 128], real[PATH_MAX];
  bool found = false;
  snprintf(maps_path, sizeof(maps_path), "/proc/%u/maps", pid);
  FILE *maps = realpath(path, real) ? fopen(maps_path, "re") : NULL;
  while (maps && !found && fgets(line, sizeof(line), maps)) {
    line[strcspn(line, "\n")] = '\0';
    size_t length = strlen(line), wanted = strlen(real);
    found = length > wanted && strcmp(line + length - wanted, real) == 0;
  }
  if (maps)
    fclose(maps);
  return found;
}

static enum native_which which_frames(const struct page *page) {
  return !page->native ? NATIVE_NONE : page->frames ? NATIVE_ALL : NATIVE_CALLED;
}

/* Where the kernel refuses, tscope-run may help. False where it does not. */
static bool read_through_launcher(struct page *page, pid_t pid, struct process_stacks *one) {
  int launcher =
      is_reading_refused(pid)
          ? launcher_read_stacks(&page->arena, pid, which_frames(page), &one->stacks, &one->native)
          : -ENOENT;
  one->through = launcher > 0 ? launcher : 0;
  return launcher > 0;
}

static int read_now(struct page *page, pid_t pid, struct process_stacks *one) {
  if (read_through_launcher(page, pid, one))
    return 0;
  return attached_read_stacks(&page->arena, pid, which_frames(page), &one->stacks, &one->native);
}

/* A stall that still lasts, of a process that the kernel does not let us read: then its own record
 * says more than /proc. */
static bool record_has_more(const struct rank *rank) {
  return rank->n_stalls && rank->stalls[rank->n_stalls - 1].end == NS_UNKNOWN &&
         is_reading_refused((pid_t)rank->pid);
}

/* What a rank is doing now, if it runs here; else what it recorded last. False if there is neither.
 */
static bool add_rank(struct page *page, const struct rank *rank) {
  struct process_stacks *one = &page->at[page->n];
  *one = (struct process_stacks){.number = rank->rank, .source = "now"};
  bool here = !rank->closed && writes_trace(rank->pid, rank->path);
  if (here && record_has_more(rank)) {
    if (read_through_launcher(page, (pid_t)rank->pid, one)) {
      page->n++;
      return true;
    }
    one->refused = describe_refusal((pid_t)rank->pid);
  } else if (here && read_now(page, (pid_t)rank->pid, one) == 0) {
    page->n++;
    return true;
  }
  if (!rank->n_stalls)
    return false;
  one->source = rank->stalls[rank->n_stalls - 1].end == NS_UNKNOWN
                    ? "from its own record"
                    : "from its own record, but it went on";
  one->stacks = rank->stalls[rank->n_stalls - 1];
  page->n++;
  return true;
}

static int print_run(struct page *page, const char *path) {
  struct model *model;
  char why[512];
  u32 without = 0;
  if (model_load(path, NULL, &model, why, sizeof(why)) < 0) {
    fprintf(stderr, "tscope-stacks: %s\n", why);
    return -ENOENT;
  }
  page->unit = "rank";
  page->at = arena_array(&page->arena, model->n_ranks + 1u, sizeof(*page->at));
  for (u32 r = 0; r < model->n_ranks && page->at; r++)
    without += !add_rank(page, &model->ranks[r]);
  int error = page->at ? print_page(page) : -ENOMEM;
  if (without)
    printf("\n%u of %u ranks: not running on this host, and no stall in their record\n", without,
           model->n_ranks);
  model_free(model);
  return error || !page->n ? -ENODATA : 0;
}

static int print_processes(struct page *page, char **pids, int n) {
  page->unit = "process";
  page->at = arena_array(&page->arena, (size_t)n + 1, sizeof(*page->at));
  for (int i = 0; i < n && page->at; i++) {
    struct process_stacks *one = &page->at[page->n];
    *one = (struct process_stacks){.number = (u32)strtoul(pids[i], NULL, 10), .source = "now"};
    int error = read_now(page, (pid_t)one->number, one);
    if (error)
      fprintf(stderr, "tscope-stacks: process %s: %s\n", pids[i], strerror(-error));
    else
      page->n++;
  }
  return !page->at || print_page(page) < 0 || !page->n ? -ENODATA : 0;
}

static bool are_numbers(char **texts, int n) {
  for (int i = 0; i < n; i++)
    if (!*texts[i] || texts[i][strspn(texts[i], "0123456789")])
      return false;
  return n > 0;
}

int main(int argc, char **argv) {
  struct page page = {0};
  if (argc == 4 && strcmp(argv[1], "--for-launcher") == 0) /* not for people: launcher_stacks.h */
    return launcher_serve_stacks((pid_t)strtoul(argv[2], NULL, 10),
                                 (enum native_which)strtoul(argv[3], NULL, 10))
               ? 1
               : 0;
  if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("tscope-stacks " TSCOPE_VERSION);
    return 0;
  }
  for (bool more = true; more && argc > 1; argc -= more, argv += more) {
    bool frames = strcmp(argv[1], "--frames") == 0, native = strcmp(argv[1], "--native") == 0;
    page.frames |= frames;
    page.native |= native;
    more = frames || native;
  }
  bool numbers = are_numbers(argv + 1, argc - 1);
  if (!numbers && (argc != 2 || argv[1][0] == '-')) {
    fputs(help, stderr);
    return 2;
  }
  int error = numbers ? print_processes(&page, argv + 1, argc - 1) : print_run(&page, argv[1]);
  arena_release(&page.arena);
  return error ? 1 : 0;
}
