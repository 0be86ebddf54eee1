/* SPDX-License-Identifier: MIT
 *
 * copies STEP...: a program that comes by NCCL in the ways that programs do, one step after the
 * other, and trains on it.
 *
 *   local:FILE global:FILE deep:FILE   loads a copy and looks its functions up by name
 *   again                              trains on the copy that was looked up first, once more
 *   linked:FILE linked-global:FILE     loads a library that links a copy
 *   p:FILE                             looks up the name of the profiling interface
 *   default:FILE                       loads a copy for all, and looks its functions up in no
 * handle
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
  *(void **)&api.strangers = dlsym(library, "fake_nccl_strangers");
  const char *error = dlerror();
  if (error)
    printf("%s\n", error);
  /* Asked for again, a function is the same. */
  if (dlsym(where, "ncclBcast") != *(void **)&api.bcast)
    printf("ncclBcast is another now\n");
  return api;
}

static void linked(const char *step, const char *file, int mode) {
  void (*trains)(const char *);
  *(void **)&trains = dlsym(load(file, mode), "linked_trains");
  trains(step);
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
    } else if (!strcmp(step, "linked")) {
      linked(step, file, RTLD_LOCAL);
    } else if (!strcmp(step, "linked-global")) {
      linked(step, file, RTLD_GLOBAL);
    } else {
      bool in_no_handle = !strcmp(step, "default");
      int mode = in_no_handle || !strcmp(step, "global") ? RTLD_GLOBAL
                 : !strcmp(step, "deep")                 ? RTLD_LOCAL | RTLD_DEEPBIND
                                                         : RTLD_LOCAL;
      void *library = load(file, mode);
      struct nccl_api api = look_up(library, in_no_handle ? RTLD_DEFAULT : library,
                                    !strcmp(step, "p") ? "pncclAllReduce" : "ncclAllReduce");
      if (!first.init)
        first = api;
      train(step, &api);
    }
  }
  return 0;
}
