/* SPDX-License-Identifier: MIT
 *
 * What the model takes from NCCL's own records of its collectives: what NCCL chose, and, if no
 * other source shows it, when they ran. Those times are from the GPU's own timer, which is seconds
 * off and drifts.
 */
#include "model_support.h"

enum { CALLS = 400, EVERY_NS = 20000000, LASTS_NS = 3000000, SEEN_LATE_NS = 40000 };

/* The host time at which the GPU starts call i, and the GPU's timer at a host time. */
static u64 start_of(u32 i) {
  return AT(100000000ull + i * (u64)EVERY_NS);
}

static u64 timer(u64 host) {
  return host + 77000000000ull + host / 50000; /* 20 ppm fast */
}

/* Each call is put on its stream 1 ms before it starts. NCCL notices its end up to 40 us late, but
 * within 1 us for one call in ten. */
static void write_inside(struct trace_writer *writer, u32 i, u32 algorithm, u32 protocol) {
  u64 launched = start_of(i) - 1000000;
  struct tscope_collective_inside_record *inside =
      trace_add(writer, retained, launched, TSCOPE_REC_COLLECTIVE_INSIDE, TSCOPE_OP_ALLREDUCE,
                sizeof(*inside));
  inside->dur = 1000000 + LASTS_NS + (i % 10 == 3 ? 1000 : SEEN_LATE_NS - i % 7 * 1000);
  inside->gpu_start = timer(start_of(i));
  inside->gpu_stop = timer(start_of(i) + LASTS_NS);
  inside->seq = i;
  inside->algorithm = algorithm;
  inside->protocol = protocol;
  inside->channels = inside->channels_seen = 8;
}

static void write_ranks(struct fixture *fixture, bool runs) {
  for (u32 r = 0; r < 2; r++) {
    struct trace_writer *writer = new_rank(r, 2);
    u32 ring = trace_string(writer, "RING"), tree = trace_string(writer, "TREE"),
        simple = trace_string(writer, "SIMPLE");
    write_comm(writer, 0, 42, r, 2, TSCOPE_BACKEND_NCCL);
    for (u32 i = 0; i < CALLS; i++) {
      write_call(writer, start_of(i) - AT(0) - 1100000, TSCOPE_OP_ALLREDUCE, 0, i);
      if (runs)
        write_run(writer, start_of(i) - AT(0) + 500, LASTS_NS, "ncclDevKernel_AllReduce");
      write_inside(writer, i, i % 2 ? ring : tree, simple);
    }
    save_rank(fixture, writer);
  }
}

static void collectives_know_what_nccl_chose(void **state) {
  write_ranks(*state, true);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  assert_int_equal(model->n_collectives, CALLS);
  for (u32 c = 0; c < CALLS; c++) {
    const struct collective *one = &model->collectives[c];
    assert_string_equal(one->algorithm, one->seq % 2 ? "RING" : "TREE");
    assert_string_equal(one->protocol, "SIMPLE");
    assert_int_equal(one->channels, 8);
  }
  /* The times of a GPU clock source are preferred to NCCL's. */
  for (u32 i = 0; i < model->n_arrivals; i++)
    assert_int_equal(model->arrivals[i].end - model->arrivals[i].start, LASTS_NS);
  assert_int_equal(model->n_notes, 0);
  model_free(model);
}

/* The times are as exact as NCCL's delay allows, and so is the reported error. */
static void nccls_records_show_when_collectives_ran(void **state) {
  write_ranks(*state, false);
  struct model *model = load(((struct fixture *)*state)->directory, NULL);
  i64 first = INT64_MAX;
  for (u32 i = 0; i < model->n_arrivals; i++)
    first = MIN(model->arrivals[i].start, first);
  assert_int_equal(model->n_arrivals, 2 * CALLS);
  for (u32 i = 0; i < model->n_arrivals; i++) {
    const struct arrival *arrival = &model->arrivals[i];
    assert_true(arrival->start != NS_UNKNOWN);
    u32 seq = model->collectives[arrival->collective].seq;
    i64 error = (arrival->start - first) - (i64)(start_of(seq) - start_of(0));
    /* 20 ppm of the second between the best observations, plus the 1 us of such an observation */
    assert_in_range(error + 22000, 0, 44000);
    assert_int_equal(arrival->stream, 1);
  }
  assert_int_equal(model->n_notes, 1);
  assert_non_null(strstr(model->notes[0], "times of collectives come from NCCL"));
  model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(collectives_know_what_nccl_chose, make_fixture, drop_fixture),
      cmocka_unit_test_setup_teardown(nccls_records_show_when_collectives_ran, make_fixture,
                                      drop_fixture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
