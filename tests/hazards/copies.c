/* SPDX-License-Identifier: MIT
 *
 * copies STEP...: a program that gets its NCCL functions in several ways, one after the other, and
 * trains with each.
 *
 *   local:FILE global:FILE deep:FILE   loads a copy and looks up its functions by name
 *   again                              trains once more with the copy that was looked up first
 *   linked:FILE linked-global:FILE     loads a library that links a copy
 *   unloaded:FILE                      the same, and unloads it
 *   p:FILE                             looks up the names of the profiling interface
 *   default:FILE                       loads a copy RTLD_GLOBAL, and looks up with RTLD_DEFAULT
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "copies.h"

static void *load(const char *file, int mode) {
  void *library = dlopen(file, RTLD_NOW | mode);
  if (!library) {
    printf("%s\n", dlerror());
    exit(2);
  }
  return library;
}

static struct nccl_api look_up(void *library, void *where, const char *all_reduce) {
  struct nccl_api api;
  *(void **)&api.init = dlsym(where, "ncclCommInitRank");
  *(void **)&api.all_reduce = dlsym(where, all_reduce);
  *(void **)&api.bcast = dlsym(where, "ncclBcast");
  *(void **)&api.destroy = dlsym(where, "ncclCommDestroy");
  *(void **)&api.foreign_calls = dlsym(library, "fake_nccl_foreign_calls");
  *(void **)&api.all_reduces = dlsym(library, "fake_nccl_all_reduces");
  const char *error = dlerror();
  if (error)
    printf("%s\n", error);
  /* A second look-up must find the same function. */
  if (dlsym(where, "ncclBcast") != *(void **)&api.bcast)
    printf("ncclBcast is another now\n");
  return api;
}

static void train_linked(const char *step, const char *file, int mode) {
  void (*trains)(const char *);
  void *library = load(file, mode);
  *(void **)&trains = dlsym(library, "train_linked_copy");
  trains(step);
  if (!strcmp(step, "unloaded"))
    dlclose(library);
}

int main(int argc, char **argv) {
  static struct nccl_api first;
  for (int i = 1; i < argc; i++) {
    const char *file = strchr(argv[i], ':');
    size_t length = file ? (size_t)(file++ - argv[i]) : strlen(argv[i]);
    char step[32];
    snprintf(step, sizeof(step), "%.*s", (int)length, argv[i]);
    if (!strcmp(step, "again")) {
      train(step, &first);
    } else if (!strcmp(step, "linked") || !strcmp(step, "unloaded")) {
      train_linked(step, file, RTLD_LOCAL);
    } else if (!strcmp(step, "linked-global")) {
      train_linked(step, file, RTLD_GLOBAL);
    } else {
      bool by_default = !strcmp(step, "default");
      int mode = by_default || !strcmp(step, "global") ? RTLD_GLOBAL
                 : !strcmp(step, "deep")               ? RTLD_LOCAL | RTLD_DEEPBIND
                                                       : RTLD_LOCAL;
      void *library = load(file, mode);
      struct nccl_api api = look_up(library, by_default ? RTLD_DEFAULT : library,
                                    !strcmp(step, "p") ? "pncclAllReduce" : "ncclAllReduce");
      if (!first.init)
        first = api;
      train(step, &api);
    }
  }
  return 0;
}
