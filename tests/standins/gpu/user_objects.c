/* SPDX-License-Identifier: MIT
 *
 * User objects: what a graph needs for as long as it, or what was made from it, exists. When nobody
 * holds one any more its function is called. The real library calls that on a thread of its own;
 * in both it must not call CUDA.
 */
#include <stdlib.h>

#include "order.h"

struct sim_user_object {
  unsigned holders;
  void (*destroy)(void *);
  void *what;
};

struct sim_user_object *sim_user_object_new(void *what, void (*destroy)(void *), unsigned holders) {
  struct sim_user_object *object = calloc(1, sizeof(*object));
  if (object)
    *object = (struct sim_user_object){holders, destroy, what};
  return object;
}

void sim_user_object_hold(struct sim_user_object *object, unsigned holders) {
  object->holders += holders;
}

void sim_user_object_release(struct sim_user_object *object, unsigned holders) {
  object->holders -= holders < object->holders ? holders : object->holders;
  if (object->holders)
    return;
  object->destroy(object->what);
  free(object);
}

void sim_graph_hold(struct sim_graph *graph, struct sim_user_object *object, unsigned holders) {
  while (holders--) {
    graph->held = realloc(graph->held, (graph->n_held + 1) * sizeof(*graph->held));
    if (!graph->held)
      abort();
    graph->held[graph->n_held++] = object;
  }
}

void sim_graph_hold_same(struct sim_graph *graph, const struct sim_graph *from) {
  for (size_t i = 0; i < from->n_held; i++) {
    sim_user_object_hold(from->held[i], 1);
    sim_graph_hold(graph, from->held[i], 1);
  }
}

void sim_graph_let_go(struct sim_graph *graph) {
  for (size_t i = 0; i < graph->n_held; i++)
    sim_user_object_release(graph->held[i], 1);
  free(graph->held);
  graph->held = NULL;
  graph->n_held = 0;
}
