/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/folders.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/byte_source.h"
#include "import/file_budget.h"
#include "model/building.h"

struct kind {
  const char *one, *several;
  input_probe *probe;
  input_load *load;
};

#define K(id, one, several, contains) {one, several, probe_##id, load_##id},
static const struct kind kinds[] = {TSCOPE_INPUTS(K)};
#undef K
#define KINDS LENGTH_OF(kinds)

typedef VECTOR(struct input) inputs;

struct sorting {
  struct arena *arena;
  inputs of_kind[KINDS];
  VECTOR(const char *) unknown; /* named on the command line, but not recognised */
  u32 others;                   /* in folders */
};

u32 rank_said_by_name(const char *name) {
  return strcasestr(name, "rank") ? rank_of_name(name) : INDEX_NONE;
}

const char *digits_after_rank(const char *name) {
  const char *digits = NULL;
  for (const char *at = name; (at = strcasestr(at, "rank")) != NULL; at += 4) {
    const char *number = at + 4 + strspn(at + 4, "_-=.: ");
    digits = isdigit((unsigned char)*number) ? number : digits;
  }
  return digits;
}

u32 rank_of_name(const char *name) {
  const char *digits = digits_after_rank(name);
  size_t length = strcspn(name, ".");
  if (length == 0)
    length = strlen(name);
  if (!digits) {
    const char *end = name + length;
    while (end > name && !isdigit((unsigned char)end[-1]))
      end--;
    digits = end;
    while (digits > name && isdigit((unsigned char)digits[-1]))
      digits--;
    if (digits == end)
      return INDEX_NONE;
  }
  return (u32)leading_number(digits, INDEX_NONE, NULL);
}

bool head_has(const struct input *input, const char *word) {
  return input->head_bytes && memmem(input->head, input->head_bytes, word, strlen(word)) != NULL;
}

/* First bytes, if there are any. */
static void read_head(const char *path, u8 *head, struct input *input) {
  struct byte_source *source;
  if (byte_source_open(&source, path) != 0)
    return;
  i64 got = byte_source_read(source, head, INPUT_HEAD_BYTES);
  input->head_bytes = got > 0 ? (u32)got : 0;
  input->gzip = byte_source_is_gzip(source);
  byte_source_close(source);
  memset(head + input->head_bytes, 0, INPUT_HEAD_PADDING);
}

/* Adds a file to those of its kind. What a run has most of, traces, is recognised by its name. One
 * that cannot be opened has no first bytes; its name may still show what it is. */
static void add_file(struct sorting *sorting, const char *path, const struct stat *status,
                     bool given) {
  u8 head[INPUT_HEAD_BYTES + INPUT_HEAD_PADDING];
  struct input input = {.path = arena_text(sorting->arena, path),
                        .bytes = (u64)status->st_size,
                        .device = status->st_dev,
                        .number = status->st_ino,
                        .given = given,
                        .head = head};
  size_t k = 0;
  memset(head, 0, INPUT_HEAD_PADDING);
  input.name = last_part(input.path);
  if (!kinds[k].probe(&input))
    read_head(path, head, &input);
  while (k < KINDS && !kinds[k].probe(&input))
    k++;
  input.head = NULL;
  input.head_bytes = 0;
  if (k < KINDS) {
    VECTOR_PUSH(&sorting->of_kind[k], input);
    return;
  }
  sorting->others += !given;
  if (given)
    VECTOR_PUSH(&sorting->unknown, input.path);
}

/* A file in a folder that cannot be read hides only itself. */
static void add_file_in_folder(void *sorting, const char *path) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
    add_file(sorting, path, &status, false);
}

ORDER_BY(by_path, struct input, BY_TEXT(path))
ORDER_BY(by_file, struct input, UP(device) UP(number) BY_TEXT(path))

/* A file that was named, and is in a folder that was named too, counts once. */
static void drop_repeated(inputs *files) {
  SORT(files->at, files->n, by_file);
  files->n = KEEP_FIRST(files->at, files->n, last, one,
                        last->device == one->device && last->number == one->number);
}

static int add_paths(struct sorting *sorting, const char *const *paths, u32 n, char *why,
                     size_t why_bytes) {
  FOR_EACH(paths, n, path) {
    struct stat status;
    int result = stat(*path, &status) < 0 ? -errno : 0;
    if (result == 0 && S_ISDIR(status.st_mode))
      result = folder_visit(*path, FOLDERS_DEEP, add_file_in_folder, sorting);
    else if (result == 0)
      add_file(sorting, *path, &status, true);
    if (result < 0) {
      snprintf(why, why_bytes, "%s: %s. " GIVE_THE_DIRECTORY, *path, strerror(-result));
      return result;
    }
  }
  FOR_EACH_CHANGED(sorting->of_kind, KINDS, each) {
    if (n > 1)
      drop_repeated(each);
    SORT(each->at, each->n, by_path);
  }
  return 0;
}

/* Nothing was recognised: lists what can be read. */
static int describe_unrecognised(const struct sorting *sorting, const char *path, char *why,
                                 size_t why_bytes) {
  size_t used = 0;
  if (sorting->unknown.n)
    used = (size_t)snprintf(why, why_bytes,
                            "%s is not recognised; what can be read:", sorting->unknown.at[0]);
  else
    used = (size_t)snprintf(why, why_bytes,
                            "%s: no traces (*%s) here. " WAS_IT_RUN " What can be read:", path,
                            TSCOPE_FILE_SUFFIX);
  for (size_t k = 0; k < KINDS && used < why_bytes; k++)
    used += (size_t)snprintf(why + used, why_bytes - used, "%s %s", k ? "," : "", kinds[k].several);
  return -ENOENT;
}

static struct model_input input_of(size_t kind, u32 files) {
  return (struct model_input){.what = files == 1 ? kinds[kind].one : kinds[kind].several,
                              .files = files};
}

/* What the report says it is based on. */
static void list_inputs(struct import *import, const struct sorting *sorting) {
  struct model *model = import->model;
  model->inputs = arena_array(import->arena, KINDS, sizeof(*model->inputs));
  for (size_t k = 0; k < KINDS; k++) {
    u32 files = sorting->of_kind[k].n;
    if (files)
      model->inputs[model->n_inputs++] = input_of(k, files);
  }
  FOR_EACH(sorting->unknown.at, sorting->unknown.n, one)
    model_note(model, "%s is not recognised and was left out", *one);
}

void import_leave_out(struct import *import, const char *path, const char *what) {
  snprintf(import->why, import->why_bytes, "%s %s", path, what);
  model_note(import->model, IS_LEFT_OUT, path, what);
  import->noted = true;
}

/* Runs every kind in turn. One that fails becomes a note if another kind has facts. */
static int load_kinds(struct import *import, const struct sorting *sorting) {
  int first_failure = 0;
  u32 loaded = 0, place = 0;
  for (size_t k = 0; k < KINDS; k++) {
    const inputs *files = &sorting->of_kind[k];
    char why[512] = "";
    struct import one = *import;
    one.why = why;
    one.why_bytes = sizeof(why);
    int result = files->n ? kinds[k].load(&one, files->at, files->n) : 0;
    loaded += files->n && result == 0;
    if (result == 0 && one.used)
      import->model->inputs[place] = input_of(k, one.used);
    place += files->n > 0;
    if (result == 0)
      continue;
    if (!why[0])
      snprintf(why, sizeof(why), "%s: %s", files->at[0].path, strerror(-result));
    if (first_failure == 0)
      snprintf(import->why, import->why_bytes, "%s", why);
    first_failure = first_failure ? first_failure : result;
    if (!one.noted)
      model_note(import->model, "%s", why);
  }
  return loaded ? 0 : first_failure;
}

int import_load(const char *const *paths, u32 n, const struct model_options *options,
                struct model **out, char *why, size_t why_bytes) {
  static const struct model_options defaults;
  struct model *model = model_new();
  budget_covers_json();
  *out = NULL;
  why[0] = 0;
  struct import import = {.model = model,
                          .arena = model_arena(model),
                          .options = options ? options : &defaults,
                          .why = why,
                          .why_bytes = why_bytes};
  struct sorting sorting = {.arena = import.arena};
  u32 recognised = 0;
  int result = add_paths(&sorting, paths, n, why, why_bytes);
  FOR_EACH(sorting.of_kind, KINDS, item)
    recognised += item->n;
  if (result == 0 && recognised == 0)
    result = describe_unrecognised(&sorting, paths[0], why, why_bytes);
  if (result == 0)
    list_inputs(&import, &sorting);
  if (result == 0)
    result = load_kinds(&import, &sorting);
  if (result == 0 && !model->run)
    model->run = arena_text(import.arena, last_part(paths[0]));
  FOR_EACH(sorting.of_kind, KINDS, each)
    free(each->at);
  free(sorting.unknown.at);
  if (result < 0)
    model_free(model);
  else
    *out = model;
  return result;
}

void import_tell_times_kept(const struct model *model, u32 most, const char *program) {
  if (most && model->steps.n > most && !model->steps.times)
    fprintf(
        stderr,
        "%s: --timed-steps left nothing out: it needs traces of tscope in which steps have names "
        "(marks, ranges, optimizer phases), and collectives that are calls with known times\n",
        program);
}
