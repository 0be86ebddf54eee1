/* SPDX-License-Identifier: MIT
 *
 * Links that are slower than others: of a host, between two hosts, or of one communicator.
 *
 * Transfers alike (operation, size, number of ranks) that went over different hosts are compared.
 * If each that a host took part in was slower than all others, its links are slow; the same for two
 * hosts. Times are those of the member that took the shortest, which needs no common clock.
 * Messages need one, but its error has another sign in each direction: so they count if both are
 * known.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/statistics.h"

/* Comparing every kind with every other is quadratic: the costliest are enough. */
#define LINKS_COMPARED 256u

/* Transfers of one communicator, or the messages between two hosts. */
struct route {
  const struct collective_result *row; /* the costliest */
  double at_least_ms, at_most_ms;
  bool *hosts; /* [n_hosts] it goes over */
  u32 n_hosts;
};

struct routes {
  struct findings *f;
  u32 n_hosts;
  struct route *at;
  u32 n;
};

/* What is slow: everything that goes over `host`, or over both. */
struct slow_place {
  u32 host, other; /* INDEX_NONE: one host */
  u32 slow, fast;  /* routes */
  bool inside;     /* they do not leave the host */
  double ms, others_ms;
  const struct collective_result *row; /* the costliest */
};

static bool comparable(const struct findings *f, const struct collective_result *a,
                       const struct collective_result *b) {
  const struct comm *comms = f->a->model->comms;
  return a->op_id == b->op_id && a->bytes == b->bytes && a->sizes == 1 && b->sizes == 1 &&
         b->transfer_ms > 0 && comms[a->comm_index].size == comms[b->comm_index].size &&
         comms[a->comm_index].backend == comms[b->comm_index].backend;
}

/* Ranks of which the record does not say where they ran are on no known host. */
static void add_host(const struct routes *routes, struct route *route, u32 rank) {
  const struct model *model = routes->f->a->model;
  u32 host = rank == INDEX_NONE ? INDEX_NONE : model->ranks[rank].host_number;
  bool *known = host < model->n_hosts ? &route->hosts[host] : NULL;
  route->n_hosts += known && !*known;
  if (known)
    *known = true;
}

static struct route route_of(const struct routes *routes, const struct collective_result *row) {
  const struct model *model = routes->f->a->model;
  const struct comm *comm = &model->comms[row->comm_index];
  struct route route = {.row = row,
                        .at_least_ms = row->at_least_ms,
                        .at_most_ms = row->at_most_ms,
                        .hosts = arena_array(routes->f->a->arena, routes->n_hosts, sizeof(bool))};
  if (row->from != INDEX_NONE) {
    add_host(routes, &route, model_rank_index(model, row->from));
    add_host(routes, &route, model_rank_index(model, row->to));
  }
  for (u32 m = 0; m < comm->size && comm->members && row->from == INDEX_NONE; m++)
    add_host(routes, &route, comm->members[m]);
  return route;
}

static bool opposite(const struct collective_result *a, const struct collective_result *b) {
  return a->from != INDEX_NONE && a->from == b->to && a->to == b->from;
}

/* Messages in one direction only show the error of the clocks as much as the time they take. */
static void list_routes(struct routes *routes) {
  const struct results *r = routes->f->r;
  u32 n = MIN(r->n_collectives, LINKS_COMPARED);
  routes->at = arena_array(routes->f->a->arena, n, sizeof(*routes->at));
  for (u32 i = 0; i < n; i++) {
    const struct collective_result *row = &r->collectives[i];
    if (!(row->bytes > 0) || !(row->transfer_ms > 0))
      continue;
    struct route route = route_of(routes, row);
    u32 back = row->from == INDEX_NONE ? i : 0;
    while (back < n && row->from != INDEX_NONE &&
           !(opposite(row, &r->collectives[back]) &&
             comparable(routes->f, row, &r->collectives[back])))
      back++;
    if (back == n || route.n_hosts == 0 || (row->from != INDEX_NONE && back < i))
      continue;
    route.at_least_ms = (route.at_least_ms + r->collectives[back].at_least_ms) / 2;
    route.at_most_ms = (route.at_most_ms + r->collectives[back].at_most_ms) / 2;
    routes->at[routes->n] = route;
    routes->n += route.at_least_ms > 0;
  }
}

static struct routes find_routes(struct findings *f) {
  struct routes routes = {.f = f, .n_hosts = f->a->model->n_hosts};
  list_routes(&routes);
  return routes;
}

static bool goes_over(const struct route *route, u32 host, u32 other) {
  return route->hosts[host] && (other == INDEX_NONE || route->hosts[other]);
}

/* Whether each route alike over these hosts is slower than all alike that are not. */
static bool is_slow(const struct routes *routes, const struct route *like, u32 host, u32 other,
                    struct slow_place *place) {
  double least = INFINITY, most = 0;
  *place = (struct slow_place){.host = host, .other = other, .inside = true};
  FOR_EACH(routes->at, routes->n, route) {
    if (!comparable(routes->f, like->row, route->row))
      continue;
    if (!goes_over(route, host, other)) {
      most = fmax(most, route->at_most_ms);
      place->fast++;
      continue;
    }
    least = fmin(least, route->at_least_ms);
    place->slow++;
    place->inside &= route->n_hosts == 1;
    if (!place->row || route->at_least_ms * route->row->count > place->ms * place->row->count) {
      place->row = route->row;
      place->ms = route->at_least_ms;
    }
  }
  place->others_ms = most;
  return place->slow && place->fast && place->slow + place->fast >= SLOW_LINK_MIN_PEERS &&
         least >= SLOW_LINK_RATIO * most;
}

/* Another host that all routes alike over this one go over, too: it may as well be the link between
 * the two. */
static u32 constant_companion(const struct routes *routes, const struct route *like, u32 host) {
  for (u32 other = 0; other < routes->n_hosts; other++) {
    if (other != host &&
        ALL(routes->at, routes->n, one,
            !comparable(routes->f, like->row, one->row) || !one->hosts[host] || one->hosts[other]))
      return other;
  }
  return INDEX_NONE;
}

/* The links of a host explain more than those of two: they are tried first. */
static bool find_slow_place(const struct routes *routes, const struct route *like,
                            struct slow_place *place) {
  for (u32 host = 0; host < routes->n_hosts; host++)
    if (is_slow(routes, like, host, INDEX_NONE, place)) {
      u32 other = constant_companion(routes, like, host);
      place->host = MIN(host, other); /* INDEX_NONE is the largest */
      place->other = MAX(other, host);
      return true;
    }
  FOR_EACH(routes->at, routes->n, route) {
    u32 host = 0, other;
    if (route->n_hosts != 2 || !comparable(routes->f, like->row, route->row))
      continue;
    while (!route->hosts[host])
      host++;
    for (other = host + 1; !route->hosts[other];)
      other++;
    if (is_slow(routes, like, host, other, place))
      return true;
  }
  return false;
}

static const char *host_name(const struct routes *routes, u32 host) {
  const struct model *model = routes->f->a->model;
  return FIND(model->ranks, model->n_ranks, one, one->host_number == host)->host;
}

static const char *describe_place(const struct routes *routes, const struct slow_place *place) {
  struct arena *arena = routes->f->a->arena;
  const char *host = host_name(routes, place->host);
  if (place->other != INDEX_NONE)
    return arena_printf(arena, "between %s and %s", host, host_name(routes, place->other));
  return arena_printf(arena, place->inside ? "inside %s" : "to and from %s", host);
}

static double extra_ms(const struct findings *f, const struct collective_result *row, double ms,
                       double others) {
  return (ms - others) * row->count / f->steps;
}

/* Transfers like those of a row, but for which ranks send to which. */
static struct cure_change quicker(const struct collective_result *row, double left) {
  return (struct cure_change){
      .kind = CHANGE_TRANSFERS, .which = row->comm_index, .of = row->op_id, .left = left};
}

/* Ranks that are on a host, or on another than that. */
static const bool *ranks_of_host(const struct findings *f, u32 host, bool on_it) {
  const struct model *model = f->a->model;
  bool *ranks = arena_array(f->a->arena, model->n_ranks, sizeof(bool));
  for (u32 r = 0; r < model->n_ranks; r++)
    ranks[r] = (model->ranks[r].host_number == host) == on_it;
  return ranks;
}

static double saving_of_place(struct findings *f, const struct slow_place *place, double extra) {
  struct cure_change change = quicker(place->row, place->others_ms / place->ms);
  if (place->row->from != INDEX_NONE) {
    u32 host = place->other == INDEX_NONE ? place->host : place->other;
    change.from = ranks_of_host(f, place->host, true);
    change.to = ranks_of_host(f, host, place->inside || host != place->host);
    change.both_ways = true;
  }
  return saving_of_change(f, change, extra);
}

static double saving_of_link(struct findings *f, const struct collective_result *row, double left,
                             double extra) {
  struct cure_change change = quicker(row, left);
  if (row->from != INDEX_NONE) {
    u32 n = f->a->model->n_ranks;
    bool *from = arena_array(f->a->arena, n, sizeof(bool)),
         *to = arena_array(f->a->arena, n, sizeof(bool));
    from[model_rank_index(f->a->model, row->from)] = true;
    to[model_rank_index(f->a->model, row->to)] = true;
    change.from = from;
    change.to = to;
  }
  return saving_of_change(f, change, extra);
}

static void add_place_finding(const struct routes *routes, const struct slow_place *place) {
  struct findings *f = routes->f;
  const struct model *model = f->a->model;
  double extra = extra_ms(f, place->row, place->ms, place->others_ms);
  if (!is_notable(f, extra))
    return;
  u32 *ranks = arena_array(f->a->arena, model->n_ranks, sizeof(u32));
  u32 n = LIST_WHERE(ranks, 0, model->n_ranks, r,
                     model->ranks[r].host_number == place->host ||
                         model->ranks[r].host_number == place->other,
                     model->ranks[r].rank);
  const char *where = describe_place(routes, place);
  double saving = saving_of_place(f, place, extra);
  finding_add(f, severity_of(f, per_step_of(f, saving)), saving,
              say(f, "Transfers %s take %.1f times as long as elsewhere", where,
                  place->ms / place->others_ms),
              say(f, "%s of %s: %s %s, at most %s elsewhere; compared %u to %u %s.", place->row->op,
                  byte_size(place->row->bytes).text, duration_ms(place->ms).text, where,
                  duration_ms(place->others_ms).text, place->slow, place->fast,
                  place->row->from == INDEX_NONE ? "communicators" : "pairs of ranks"),
              say(f,
                  "Check the links %s: NIC and its speed, cable, switch port, PCIe width, NVLink "
                  "state, what else uses them, and whether traffic takes the path you expect.",
                  where),
              ranks, n);
}

/* Without a host that explains it: one communicator, or two ranks, against the median of others. */
static u32 link_ranks(const struct findings *f, const struct collective_result *c, u32 *ranks) {
  const struct model *model = f->a->model;
  const struct comm *comm = &model->comms[c->comm_index];
  if (c->from != INDEX_NONE) {
    ranks[0] = c->from;
    ranks[1] = c->to;
    return 2;
  }
  return LIST_WHERE(ranks, 0, comm->members ? comm->size : 0, i, comm->members[i] != INDEX_NONE,
                    model->ranks[comm->members[i]].rank);
}

/* Once all had arrived, at least or at most. */
static double transfer_of_row(const struct collective_result *row, bool at_least) {
  return row->from == INDEX_NONE ? row->transfer_ms : at_least ? row->at_least_ms : row->at_most_ms;
}

/* Between processes of one host gloo copies through the kernel: that is no link. */
static bool has_link(const struct findings *f, const struct collective_result *row,
                     const u32 *ranks, u32 n) {
  const struct model *model = f->a->model;
  u32 first = n ? model_rank_index(model, ranks[0]) : INDEX_NONE;
  bool apart =
      first == INDEX_NONE || !model->ranks[first].host ||
      ANY_NUMBER(1, n, i, !model_same_host(model, first, model_rank_index(model, ranks[i])));
  return apart || model->comms[row->comm_index].backend == TSCOPE_BACKEND_NCCL;
}

static void check_link(struct findings *f, u32 index, double *values, u32 *ranks) {
  const struct results *r = f->r;
  const struct collective_result *c = &r->collectives[index];
  double ms = transfer_of_row(c, true);
  if (!(ms > 0) || !(c->bytes > 0))
    return;
  u32 n = LIST_WHERE(values, 0, r->n_collectives, i,
                     i != index && comparable(f, c, &r->collectives[i]) &&
                         transfer_of_row(&r->collectives[i], false) > 0,
                     transfer_of_row(&r->collectives[i], false));
  double others = median_of(values, n);
  double extra = extra_ms(f, c, ms, others);
  if (n < SLOW_LINK_MIN_PEERS || ms < SLOW_LINK_RATIO * others ||
      extra < WORTH_MENTIONING * f->step_ms)
    return;
  u32 n_ranks = link_ranks(f, c, ranks);
  if (!has_link(f, c, ranks, n_ranks))
    return;
  double saving = saving_of_link(f, c, others / ms, extra);
  finding_add(f, severity_of(f, per_step_of(f, saving)), saving,
              say(f, "Transfers on %s take %.1f times as long as elsewhere", c->comm, ms / others),
              say(f,
                  "%s of %s: %s on %s, median %s on %u others alike, once all had arrived; "
                  "%s.",
                  c->op, byte_size(c->bytes).text, duration_ms(ms).text, c->comm,
                  duration_ms(others).text, n, plural(c->count, "time").text),
              say(f,
                  "Check the links between the ranks of %s: NIC, cable, PCIe width, NVLink state, "
                  "and whether traffic takes the path you expect.",
                  c->comm),
              ranks, n_ranks);
}

/* Whether transfers alike came before in the list. */
static bool looked_at(const struct findings *f, u32 row) {
  return ANY(f->r->collectives, row, one, comparable(f, &f->r->collectives[row], one));
}

void rule_slow_link(struct findings *f) {
  struct routes routes = find_routes(f);
  u32 n = f->r->n_collectives;
  double *values = arena_array(f->a->arena, n, sizeof(double));
  u32 *ranks = arena_array(f->a->arena, size_sum(f->a->model->n_ranks, 2), sizeof(u32));
  bool *explained = arena_array(f->a->arena, n, sizeof(bool));
  struct slow_place place;
  for (u32 i = 0; i < routes.n; i++) {
    const struct collective_result *row = routes.at[i].row;
    if (looked_at(f, (u32)(row - f->r->collectives)) ||
        !find_slow_place(&routes, &routes.at[i], &place))
      continue;
    for (u32 k = 0; k < n; k++)
      explained[k] |= comparable(f, row, &f->r->collectives[k]);
    add_place_finding(&routes, &place);
  }
  for (u32 i = 0; i < n && i < LINKS_COMPARED; i++)
    if (!explained[i])
      check_link(f, i, values, ranks);
}

const char *describe_hosts_of(struct findings *f, const struct collective_result *row) {
  struct routes routes = find_routes(f);
  struct route route = route_of(&routes, row);
  struct slow_place place;
  u32 others = 0, at[2] = {0, 0}, n = 0;
  for (u32 i = 0; i < routes.n; i++) {
    if (!comparable(f, row, routes.at[i].row))
      continue;
    if (find_slow_place(&routes, &routes.at[i], &place))
      return say(f, " The slow ones are those %s.", describe_place(&routes, &place));
    others += memcmp(routes.at[i].hosts, route.hosts, routes.n_hosts * sizeof(bool)) != 0;
  }
  for (u32 host = 0; host < routes.n_hosts && n < 2; host++)
    if (route.hosts[host])
      at[n++] = host;
  if (route.n_hosts == 0)
    return " The record does not say on which hosts: which link limits it is not known.";
  if (route.n_hosts < 2)
    return "";
  if (route.n_hosts == 2)
    return say(f, " They go between %s and %s.", host_name(&routes, at[0]),
               host_name(&routes, at[1]));
  return say(
      f,
      others ? " They go over %u hosts; those over other hosts take as long, so no link stands out."
             : " Each goes over all of %u hosts: the record cannot tell which link limits it.",
      route.n_hosts);
}
