/* SPDX-License-Identifier: MIT
 *
 * The finding on slow links: between communicators, hosts, and of messages. Runs in which it fires,
 * and such in which it nearly fires but must not.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "scenario.h"

/* Moves the all-reduces of a step to four communicators, each with its own transfer time. */
static double slow_link_ratio;
static struct comm four[4];
static void spread_over_communicators(struct cluster *c) {
  struct model *m = &c->model;
  for (u32 i = 0; i < 4; i++) {
    four[i] = m->comms[0];
    four[i].identity = i + 1;
    four[i].name = (const char *const[]){"group a", "group b", "group c", "group d"}[i];
  }
  m->comms = four;
  m->n_comms = 4;
  for (u32 i = 0; i < m->n_collectives; i++) {
    struct collective *collective = &m->collectives[i];
    collective->comm = i % 2 ? (i / 2) % 4 : 0;
    collective->bytes = i % 2 ? 8000000 : 1;
    if (i % 2 == 0 || collective->comm != 2)
      continue;
    for (u32 k = 0; k < collective->n_arrivals; k++)
      m->arrivals[collective->first_arrival + k].end +=
          (i64)((slow_link_ratio - 1) * (double)c->options.transfer);
  }
}

static void slow_link(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.transfer = 80 * MS;
  s.spoil = spread_over_communicators;
  slow_link_ratio = 2;
  assert_true(fires(&s, "DIST.SLOW_LINK"));
  slow_link_ratio = 1.4;
  assert_false(fires(&s, "DIST.SLOW_LINK"));
}

/* Eight ranks on four hosts, two each. The second all-reduce of each step is on one of the
 * communicators, in turn; each has `size` ranks, from a first one on. Some are slow. */
static struct links {
  u32 n, size, first[4];
  bool slow[4];
} links;
static struct comm comms_of_links[5];
static u32 members_of_links[4][8];

static void take_part(struct model *m, struct collective *collective, u32 link, i64 slower) {
  for (u32 k = 0; k < collective->n_arrivals; k++) {
    struct arrival *arrival = &m->arrivals[collective->first_arrival + k];
    bool member = k >= links.first[link] && k < links.first[link] + links.size;
    arrival->collective = member ? arrival->collective : INDEX_NONE;
    arrival->end += links.slow[link] ? slower : 0;
  }
  collective->comm = 1 + link;
  collective->first_arrival += links.first[link];
  collective->n_arrivals = links.size;
}

static void spread_over_hosts(struct cluster *c) {
  struct model *m = &c->model;
  for (u32 r = 0; r < m->n_ranks; r++)
    m->ranks[r].host = (const char *const[]){"node0", "node1", "node2", "node3"}[r / 2];
  comms_of_links[0] = m->comms[0];
  for (u32 link = 0; link < links.n; link++) {
    for (u32 k = 0; k < links.size; k++)
      members_of_links[link][k] = links.first[link] + k;
    comms_of_links[1 + link] = m->comms[0];
    comms_of_links[1 + link].identity = 100 + link;
    comms_of_links[1 + link].name = (const char *const[]){"a", "b", "c", "d"}[link];
    comms_of_links[1 + link].size = links.size;
    comms_of_links[1 + link].members = members_of_links[link];
  }
  m->comms = comms_of_links;
  m->n_comms = 1 + links.n;
  for (u32 i = 1; i < m->n_collectives; i += 2) {
    m->collectives[i].bytes = 8000000;
    take_part(m, &m->collectives[i], i / 2 % links.n, c->options.transfer);
  }
}

/* Each communicator has two hosts next to each other, or only one. Where the transfers of a host
 * are those with one other host, the record cannot tell its link from the link between the two. */
static void slow_links_are_named_by_their_hosts(void **state) {
  (void)state;
  static const struct {
    struct links links;
    const char *where; /* NULL: nothing is said */
    u32 n_ranks, first;
  } cases[] = {
      {{3, 4, {0, 2, 4}, {false, true, false}}, "between node1 and node2", 4, 2},
      {{3, 4, {0, 2, 4}, {false, false, true}}, "between node2 and node3", 4, 4},
      {{3, 4, {0, 2, 4}, {true, true, false}}, "to and from node1", 2, 2},
      {{4, 2, {0, 2, 4, 6}, {false, false, true, false}}, "inside node2", 2, 4},
      {{3, 4, {0, 2, 4}, {true, true, true}}, NULL, 0, 0},
      {{4, 2, {0, 2, 4, 6}, {true, false, true, false}}, "on a", 2, 0}, /* and on c */
  };
  for (u32 i = 0; i < LENGTH_OF(cases); i++) {
    struct cluster_options o = healthy_gpu();
    o.transfer = 80 * MS;
    links = cases[i].links;
    struct cluster *c = cluster_new(&o);
    spread_over_hosts(c);
    struct results *r = cluster_analyse(c, NULL);
    const struct finding *finding = finding_of(r, "DIST.SLOW_LINK");
    if (cases[i].where) {
      assert_non_null(finding);
      assert_non_null(strstr(finding->title, cases[i].where));
      assert_int_equal(finding->n_ranks, cases[i].n_ranks);
      assert_int_equal(finding->ranks[0], cases[i].first);
    } else {
      assert_null(finding);
    }
    cluster_end(r, c);
  }
}

/* The second all-reduce of each step is a message instead, of one of four pairs in turn. In the
 * first pair the receiver waits for it; in the others it comes so late that gloo has delivered it.
 * NCCL would begin only then. */
static u8 backend_of_messages;
static void send_messages(struct cluster *c) {
  struct model *m = &c->model;
  links = (struct links){4, 2, {0, 2, 4, 6}, {false}};
  spread_over_hosts(c);
  for (u32 r = 0; r < m->n_ranks; r++)
    m->ranks[r].host = (const char *const[]){"node0", "node1"}[r % 2];
  for (u32 i = 0; i < m->n_comms; i++)
    m->comms[i].backend = backend_of_messages;
  for (u32 i = 1; i < m->n_collectives; i += 2) {
    struct arrival *send = &m->arrivals[m->collectives[i].first_arrival], *receive = send + 1;
    bool waits = i / 2 % 4 == 0;
    m->collectives[i].op = send->op = TSCOPE_OP_SEND;
    receive->op = TSCOPE_OP_RECV;
    receive->start = waits ? send->start - MS : send->start + 79 * MS;
    receive->end = send->start + 80 * MS;
    m->collectives[i].last_start = waits ? send->start : receive->start;
  }
}

static void messages_that_came_before_their_receiver(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options.transfer = 80 * MS;
  s.spoil = send_messages;
  backend_of_messages = TSCOPE_BACKEND_GLOO;
  assert_false(fires(&s, "DIST.SLOW_LINK"));
  backend_of_messages = TSCOPE_BACKEND_NCCL;
  assert_true(fires(&s, "DIST.SLOW_LINK"));
}

/* Processes of one host have no link between them that gloo would use. */
static void no_link_inside_a_host(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.options = healthy_cpu();
  s.options.transfer = 80 * MS;
  s.spoil = spread_over_communicators;
  slow_link_ratio = 2;
  assert_false(fires(&s, "DIST.SLOW_LINK"));
}

/* The record does not say where ranks ran: a rank is not a host of its own. */
static void links_of_unknown_hosts_name_none(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.transfer = 80 * MS;
  links = (struct links){4, 2, {0, 2, 4, 6}, {false, false, true, false}};
  struct cluster *c = cluster_new(&o);
  spread_over_hosts(c);
  for (u32 r = 0; r < c->model.n_ranks; r++)
    c->model.ranks[r].host = NULL;
  struct results *r = cluster_analyse(c, NULL);
  for (u32 i = 0; i < r->n_findings; i++)
    if (r->findings[i].id == FINDING_DIST_SLOW_LINK ||
        r->findings[i].id == FINDING_DIST_COMM_BOUND ||
        r->findings[i].id == FINDING_DIST_EXPOSED_COMM) {
      assert_null(strstr(r->findings[i].title, "between"));
      assert_null(strstr(r->findings[i].evidence, " hosts: the record cannot tell"));
      assert_null(strstr(r->findings[i].evidence, " go between "));
    }
  assert_non_null(strstr(finding_of(r, "DIST.SLOW_LINK")->title, "on c"));
  cluster_end(r, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slow_link),
      cmocka_unit_test(slow_links_are_named_by_their_hosts),
      cmocka_unit_test(links_of_unknown_hosts_name_none),
      cmocka_unit_test(messages_that_came_before_their_receiver),
      cmocka_unit_test(no_link_inside_a_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
