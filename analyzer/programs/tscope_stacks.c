/* SPDX-License-Identifier: MIT
 *
 * tscope-stacks: where the processes of a job are now, as one tree of stacks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analyses/stalls/stall_words.h"
#include "attach/attached.h"
#include "base/checked_memory.h"
#include "base/command_line.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "programs/run_stacks.h"
#include "programs/stacks_options.def"

#define fail(...) print_problem("tscope-stacks", __VA_ARGS__)

struct page {
  struct arena arena;
  const char *unit, *units; /* "rank", "ranks"; "process", "processes" */
  bool frames, native, version, help;
  double wait_s;
  struct process_stacks *at;
  u32 n;
  bool several_hosts;
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
    printf("    %s stopped one after another: %s in all, %s the longest\n",
           plural(outcome->taken, "thread").text, duration_s(ns_to_s(outcome->all_ns)).text,
           duration_s(ns_to_s(outcome->longest_ns)).text);
  if (outcome->stuck && !outcome->why_none)
    printf("    %u more wait in the kernel, uninterruptible, and did not stop: no native frames of "
           "these\n",
           outcome->stuck);
  if (outcome->refused && !outcome->why_none)
    printf("    %u more could not be stopped: no native frames of these\n", outcome->refused);
  if (outcome->left && !outcome->why_none)
    printf("    the stacks of %u more could not be copied: no native frames of these\n",
           outcome->left);
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
  stall_describe(&page->arena, &one->stacks, NULL, &described);
  printf("%s %u%s%s  %s  %s%s%s\n", page->unit, one->number, page->several_hosts ? " on " : "",
         page->several_hosts ? one->host : "", one->source, stall_doing_words[described.what],
         described.words && *described.words ? ": " : "",
         described.words ? arena_printable(&page->arena, described.words) : "");
  if (one->silence != SILENCE_NONE)
    printf("    it %s, on %s\n", silence_text(one->silence), one->host);
  if (one->refused)
    printf("    it could not be read from outside: %s\n", one->refused);
  if (one->stacks.no_python)
    printf("    no Python frames: %s\n",
           *one->stacks.no_python ? one->stacks.no_python : "this process has no Python");
  if (page->native)
    put_native(one);
}

static void put_tree(struct page *page) {
  u64 threads = 0;
  u32 n = 0, n_lines = 0;
  struct stack_tree tree;
  FOR_EACH(page->at, page->n, each)
    threads += each->stacks.n_threads;
  struct tree_stack *stacks = arena_array(&page->arena, threads, sizeof(*stacks));
  FOR_EACH(page->at, page->n, one)
    n += stall_stacks(&one->stacks, one->number, stacks + n);
  stack_tree_make(&page->arena, stacks, n, &tree);
  struct stack_line *lines = stack_tree_lines(&page->arena, &tree, tree.n, &n_lines);
  for (u32 i = 0; i < n_lines; i++)
    printf("%s%*s%s %s  %s\n", i ? "" : "\n", (int)(2 * lines[i].depth), "",
           lines[i].n_ranks == 1 ? page->unit : page->units, lines[i].ranks,
           arena_printable(&page->arena, lines[i].text));
}

static const char *shown(struct page *page, const char *name) {
  return name ? arena_printable(&page->arena, name) : "";
}

static void put_frames(struct page *page) {
  for (u32 i = 0; page->native && i < page->n; i++)
    if (page->at[i].native.why_none)
      fail("%s %u: no native frames: %s", page->unit, page->at[i].number,
           page->at[i].native.why_none);
  for (u32 i = 0; i < page->n; i++)
    FOR_EACH(page->at[i].stacks.threads, page->at[i].stacks.n_threads, thread) {
      for (u32 f = 0; f < thread->n_frames; f++) {
        const struct call_frame *frame = thread->frames[f];
        printf("%u\t%u\t%s\t%u\t%s", page->at[i].number, thread->tid, shown(page, frame->file),
               frame->line, shown(page, frame->function));
        if (page->native)
          printf("\t%s", shown(page, frame->library));
        putchar('\n');
      }
    }
}

static void print_page(struct page *page) {
  if (page->frames) {
    put_frames(page);
    return;
  }
  for (u32 i = 0; i < page->n; i++)
    put_process(page, &page->at[i]);
  put_tree(page);
}

static enum native_which which_frames(const struct page *page) {
  return !page->native ? NATIVE_NONE : page->frames ? NATIVE_ALL : NATIVE_CALLED;
}

ORDER_BY(by_silence, struct silent_rank, UP(silence) BY_TEXT(host) UP(rank))

/* The ranks of which nothing is known, those alike in one line. */
static void put_silent(struct run_stacks *run) {
  SORT(run->silent, run->n_silent, by_silence);
  for (u32 i = 0, end; i < run->n_silent; i = end) {
    const struct silent_rank *first = &run->silent[i];
    end = i + ROW_OF_EQUALS(run->silent + i, run->n_silent - i, a, b,
                            a->silence == b->silence && strcmp(a->host, b->host) == 0);
    SCOPED_ARENA struct arena scratch = {0};
    u32 *ranks = arena_array(&scratch, end - i, sizeof(*ranks)), n = 0;
    for (u32 k = i; k < end; k++)
      ranks[n++] = run->silent[k].rank;
    printf("%son %s %s: %s\n", i ? "" : "\n", first->host, silence_text(first->silence),
           ranks_in(&scratch, ranks, n));
  }
}

static bool on_several_hosts(const struct run_stacks *run) {
  const char *first = run->n ? run->at[0].host : "";
  bool several = ANY(run->at, run->n, one, strcmp(one->host, first) != 0);
  for (u32 i = 0; i < run->n_silent && run->n; i++)
    several |= strcmp(run->silent[i].host, first) != 0;
  return several;
}

static int print_run(struct page *page, const char *path) {
  struct run_stacks run;
  struct run_request request = {.path = path, .which = which_frames(page), .wait_s = page->wait_s};
  char why[512];
  int error = run_stacks_get(&page->arena, &request, &run, why, sizeof(why));
  if (error) {
    fail("%s", why);
    return error;
  }
  page->unit = "rank";
  page->units = "ranks";
  page->at = run.at;
  page->n = run.n;
  page->several_hosts = on_several_hosts(&run);
  if (run.not_asked)
    fail("the ranks were not asked: %s", run.not_asked);
  print_page(page);
  if (!page->frames)
    put_silent(&run);
  if (run.model)
    model_free(run.model);
  return !page->n ? -ENODATA : 0;
}

static int print_processes(struct page *page, char **pids, int n) {
  page->unit = "process";
  page->units = "processes";
  page->at = arena_array(&page->arena, n, sizeof(*page->at));
  FOR_EACH(pids, n, pid) {
    struct process_stacks *one = &page->at[page->n];
    *one = (struct process_stacks){.number = (u32)leading_number(*pid, INT32_MAX, NULL),
                                   .source = "now"};
    int error = attached_read_stacks(&page->arena, (pid_t)one->number, which_frames(page),
                                     &one->stacks, &one->native);
    if (error)
      fail("process %s: %s", *pid, strerror(-error));
    else
      page->n++;
  }
  print_page(page);
  return page->n ? 0 : -ENODATA;
}

static bool are_numbers(char **texts, int n) {
  FOR_EACH(texts, n, text)
    if (!**text || (*text)[strspn(*text, "0123456789")])
      return false;
  return n > 0;
}

#define OPTIONS struct page
static const struct command_option rows[] = {TSCOPE_STACKS_OPTIONS(OPTION_GROUP, OPTION_ROW)};
static const struct command_line line = COMMAND_LINE("tscope-stacks", rows);

static int print_help(void) {
  puts("usage: tscope-stacks [OPTION]... [DIRECTORY | PID...]\n"
       "\n"
       "Shows where processes are: their Python stacks, what their threads wait for, which one "
       "holds\n"
       "the GIL. It stops no thread, except with --native.\n"
       "\n"
       "  DIRECTORY  with traces: the ranks of the newest run there, on all hosts. Each is asked, "
       "and\n"
       "             answers within a second or two; for those that do not, what they recorded "
       "when\n"
       "             they stalled. Without it: where your jobs write\n"
       "  PID        a process of yours on this host, which need not run under tscope\n");
  command_line_print_options(&line, stdout);
  puts("\nexit status: 0; 1 if nothing could be read; 2 if the command line is wrong.");
  return 0;
}

int main(int argc, char **argv) {
  struct page page = {.wait_s = 4};
  char why[512];
  int first = command_line_parse(&line, argc, argv, &page, why, sizeof(why)), n = argc - first;
  bool numbers = first > 0 && are_numbers(argv + first, n);
  if (page.help)
    return print_help();
  if (page.version) {
    puts("tscope-stacks " TSCOPE_VERSION);
    return 0;
  }
  if (first > 0 && !numbers && n > 1)
    snprintf(why, sizeof(why), "give one directory, or process ids");
  if (first < 0 || (!numbers && n > 1))
    return fail("%s", why);
  int error = numbers ? print_processes(&page, argv + first, n)
                      : print_run(&page, n ? argv[first] : directory_to_read("tscope-stacks"));
  arena_release(&page.arena);
  return error ? 1 : 0;
}
