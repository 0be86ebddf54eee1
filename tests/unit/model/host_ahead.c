/* SPDX-License-Identifier: MIT
 *
 * A step ends when the GPU has finished the work launched in it. Tests this with runs whose
 * schedule is known, and with timelines made by hand for cases that hide it.
 */
#include "importing.h"
#include "model_support.h"

static double coverage_of(const struct results *r, const char *name) {
  for (u32 i = 0; i < r->n_coverage; i++)
    if (strcmp(r->coverage[i].name, name) == 0)
      return r->coverage[i].share;
  return NAN;
}

/* The beginning of a step if steps end with their last work, as the mean over ranks, in ms. */
static double bound_ms(const struct tracegen_options *o, const struct tracegen_truth *truth,
                       u32 step) {
  double sum = 0;
  for (u32 r = 0; r < o->ranks; r++) {
    u64 gpu = step ? truth->gpu_end[(size_t)(step - 1) * o->ranks + r] : 0;
    sum += (double)MAX(truth->step_begin[(size_t)step * o->ranks + r], gpu);
  }
  return sum / o->ranks / 1e6;
}

static double compute_ms(const struct tracegen_options *o, u32 rank) {
  double factor = rank == o->slow_rank ? o->slow_factor : 1;
  return (2.0 * o->buckets * o->kernels * (double)o->kernel_ns * factor + (double)o->optimizer_ns) /
         1e6;
}

static struct tracegen_options three_ahead(void) {
  struct tracegen_options options = tracegen_defaults();
  options.step_marks = true;
  options.ahead = 3;
  options.slow_rank = 1;
  return options;
}

static void steps_hold_what_was_launched_in_them(void **state) {
  struct tracegen_options options = three_ahead();
  struct tracegen_truth truth;
  struct model *model = generate(*state, &options, &truth);
  struct results *r = analyse_all(model);
  assert_int_equal(r->n_step_ms, options.steps);
  for (u32 s = 0; s < options.steps; s++)
    assert_near(r->step_ms[s], bound_ms(&options, &truth, s + 1) - bound_ms(&options, &truth, s),
                1e-4);
  assert_int_equal((int)r->host_ahead_max_steps, 2); /* the third is already running on the GPU */
  assert_true(r->host_ahead_ms > 2 * r->step_median_ms);
  assert_near(coverage_of(r, "ends of steps on the GPU"), 1, 0);
  assert_near(r->ranks[1].rel_slowdown, compute_ms(&options, 1) / compute_ms(&options, 0) - 1,
              0.01);
  results_free(r);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Also the first and the last one. */
static void each_step_is_whole(void **state) {
  struct tracegen_options options = three_ahead();
  struct fixture *fixture = *state;
  struct tracegen_truth truth;
  static const char *const chosen[] = {"0:1", "1:2", "10:11", "19:20"};
  model_free(generate(fixture, &options, &truth));
  for (u32 i = 0; i < LENGTH_OF(chosen); i++) {
    struct model *model =
        load(fixture->directory, &(struct model_options){.steps = chosen[i], .threads = 1});
    struct results *r = analyse_all(model);
    for (u32 rank = 0; rank < options.ranks; rank++)
      assert_near(r->ranks[rank].mean_compute_ms, compute_ms(&options, rank),
                  (double)options.jitter_ns / 1e6);
    results_free(r);
    model_free(model);
  }
  tracegen_truth_free(&truth);
}

/* Ranges of the optimizer end on the host, like marks; sums over the whole run are closed forms. */
static void ranges_of_the_optimizer_end_there_too(void **state) {
  struct tracegen_options options = three_ahead();
  struct fixture *fixture = *state;
  struct tracegen_truth truth;
  options.step_marks = false;
  options.phases = true;
  model_free(generate(fixture, &options, &truth));
  struct model *model = load(fixture->directory, &(struct model_options){.include_warmup = true});
  struct results *r = analyse_all(model);
  assert_string_equal(model->steps.method, "optimizer phases");
  for (u32 rank = 0; rank < options.ranks; rank++) {
    const struct tracegen_rank *wanted = &truth.ranks[rank];
    assert_near(r->ranks[rank].mean_compute_ms, (double)wanted->compute_ns / 1e6 / options.steps,
                1e-3);
    assert_near(r->ranks[rank].exposed_ms, (double)wanted->exposed_ns / 1e6 / options.steps, 1e-3);
  }
  /* The host loads data while the GPU works through its queue: only the first step waits for data.
   */
  for (u32 i = 0; i < r->n_budget; i++)
    if (strcmp(budget_part_words[r->budget[i].part], "waiting for input") == 0)
      assert_near(r->budget[i].seconds, (double)options.data_ns / 1e9, 1e-5);
  assert_near(r->data_ms, (double)options.data_ns / 1e6, 1e-3); /* although loading takes time */
  results_free(r);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void a_host_that_waits_ends_its_steps(void **state) {
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  options.step_marks = true;
  struct model *model = generate(*state, &options, &truth);
  struct results *r = analyse_all(model);
  size_t cells = (size_t)model->steps.n * model->n_ranks;
  for (size_t i = 0; i + model->n_ranks < cells; i++)
    assert_true(model->steps.begin[i] == model->steps.host_begin[i] &&
                model->steps.end[i] == model->steps.host_end[i]);
  for (u32 s = 0; s + 1 < options.steps; s++)
    assert_near(r->step_ms[s], bound_ms(&options, &truth, s + 1) - bound_ms(&options, &truth, s),
                1e-4);
  assert_int_equal((int)r->host_ahead_max_steps, 0);
  assert_near(r->host_ahead_ms, 0, 0);
  results_free(r);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* Pairs of events show when collectives ran. Only the optimizer after the last collective is
 * missing, and its time counts for the next step, so steps are as long as before. */
static void collectives_alone_are_enough(void **state) {
  struct tracegen_options options = three_ahead();
  struct tracegen_truth truth;
  options.event_pairs = true;
  options.end_noise_ns = 0;
  struct model *model = generate(*state, &options, &truth);
  struct results *r = analyse_all(model);
  for (u32 s = 1; s < options.steps; s++)
    assert_near(r->step_ms[s], bound_ms(&options, &truth, s + 1) - bound_ms(&options, &truth, s),
                2 * (double)options.jitter_ns / 1e6);
  assert_true(r->step_ms[0] > 2 * r->step_ms[1] / 3); /* no optimizer ran before it */
  assert_int_equal((int)r->host_ahead_max_steps, 2);
  assert_near(coverage_of(r, "ends of steps on the GPU"), 1, 0);
  results_free(r);
  model_free(model);
  tracegen_truth_free(&truth);
}

static void without_gpu_times_steps_end_on_the_host(void **state) {
  struct tracegen_options options = three_ahead();
  struct tracegen_truth truth;
  options.gpu_spans = false;
  struct model *model = generate(*state, &options, &truth);
  struct results *r = analyse_all(model);
  for (u32 s = 0; s + 1 < options.steps; s++) {
    double wanted = 0;
    for (u32 rank = 0; rank < options.ranks; rank++) {
      const u64 *begin = truth.step_begin + (size_t)s * options.ranks + rank;
      wanted += (double)(begin[options.ranks] - begin[0]) / 1e6 / options.ranks;
    }
    assert_near(r->step_ms[s], wanted, 1e-4);
  }
  assert_true(isnan(r->host_ahead_ms) && isnan(r->host_ahead_max_steps));
  results_free(r);
  model_free(model);
  tracegen_truth_free(&truth);
}

/* A run lasts until its GPUs are done, not until the last thing begins on them. */
static void a_run_ends_with_its_last_work(void **state) {
  struct tracegen_options options = three_ahead();
  struct tracegen_truth truth;
  options.kernel_ns = 5000000;
  struct model *model = generate(*state, &options, &truth);
  u32 last = options.steps - 1;
  for (u32 r = 0; r < options.ranks; r++) {
    u64 lasted = truth.gpu_end[(size_t)last * options.ranks + r] - truth.step_begin[r];
    i64 known = model->ranks[r].end - model->steps.host_begin[r];
    assert_near((double)known / 1e6, (double)lasted / 1e6, 0.01);
  }
  model_free(model);
  tracegen_truth_free(&truth);
}

/* A recording of PyTorch's profiler, whose step marks are on the host. */

enum { PROFILED = 6, MARK_US = 100, KERNEL_US = 150 };

/* The host marks a step every 100 us and launches two kernels of 150 us in it, of which those of
 * the first `finished` steps run. Before that, the GPU still has work that was launched before the
 * recording began. */
static void write_profile(const struct fixture *fixture, u32 queued, u32 finished) {
  char path[128];
  snprintf(path, sizeof(path), "%s/rank0.trace.json", fixture->directory);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("{\"traceEvents\":[", file);
  for (u32 i = 0; i < queued; i++)
    fprintf(file,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%u,"
            "\"dur\":%u,\"args\":{\"stream\":7,\"correlation\":%u}},",
            1020 + i * KERNEL_US, KERNEL_US, 50 + i);
  for (u32 s = 0; s < PROFILED; s++) {
    u32 mark = 1000 + s * MARK_US;
    fprintf(file,
            "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%u\",\"tid\":1,"
            "\"ts\":%u,\"dur\":%u},",
            s, mark, MARK_US);
    for (u32 k = 0; k < 2; k++) {
      fprintf(file,
              "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,"
              "\"tid\":1,\"ts\":%u,\"dur\":5,\"args\":{\"correlation\":%u}},",
              mark + 10 * (k + 1), 100 + 2 * s + k);
      if (s < finished)
        fprintf(file,
                "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":%u,"
                "\"dur\":%u,\"args\":{\"stream\":7,\"correlation\":%u}},",
                1020 + (queued + 2 * s + k) * KERNEL_US, KERNEL_US, 100 + 2 * s + k);
    }
  }
  fputs("{\"ph\":\"i\",\"name\":\"end\"}]}", file);
  fclose(file);
}

static void marks_of_a_profiler_end_on_the_host(void **state) {
  const struct fixture *fixture = *state;
  write_profile(fixture, 0, PROFILED);
  struct model *model = import_file(fixture->directory);
  struct results *r = analyse_all(model);
  assert_int_equal(r->n_step_ms, PROFILED);
  for (u32 s = 0; s < PROFILED; s++)
    assert_near(r->step_ms[s], (2 * KERNEL_US + (s ? 0 : 20)) / 1e3, 1e-9);
  assert_near(r->ranks[0].median_compute_ms, 2 * KERNEL_US / 1e3, 1e-6);
  assert_near(r->host_ahead_max_ms, (20 + PROFILED * (2 * KERNEL_US - MARK_US)) / 1e3, 1e-9);
  results_free(r);
  model_free(model);
}

/* The first step, too, contains only the work that was launched in it. */
static void a_recording_that_begins_amid_work(void **state) {
  const struct fixture *fixture = *state;
  write_profile(fixture, 5, PROFILED);
  struct model *model = import_file(fixture->directory);
  struct results *r = analyse_all(model);
  for (u32 s = 0; s < PROFILED; s++)
    assert_near(r->step_ms[s], 2 * KERNEL_US / 1e3, 1e-9);
  assert_near(r->ranks[0].median_compute_ms, 2 * KERNEL_US / 1e3, 1e-6);
  results_free(r);
  model_free(model);
}

/* It was killed: the host had launched six steps when the GPU had finished two. */
static void steps_that_the_gpu_never_ended_have_no_length(void **state) {
  const struct fixture *fixture = *state;
  write_profile(fixture, 0, 2);
  struct model *model = import_file(fixture->directory);
  struct results *r = analyse_all(model);
  assert_near(r->step_ms[1], 2 * KERNEL_US / 1e3, 1e-9);
  for (u32 s = 2; s < r->n_step_ms; s++)
    assert_true(isnan(r->step_ms[s]));
  results_free(r);
  model_free(model);
}

/* Timelines made by hand: one rank, whose host launches a step every millisecond and is one step
 * ahead of its GPU; a step's work on the compute stream also takes a millisecond. */

enum { STEPS = 12, MOST_SPANS = 512, HOST = 0, COMPUTE, OTHER };
#define STEP 1000000ll
#define AHEAD 1500000ll /* from the launch of a step's first kernel to its start */

struct by_hand {
  struct model model;
  struct rank rank;
  struct arena arena;
  struct span spans[MOST_SPANS];
  u32 n;
  i64 ring_begin;
};

static u32 add_span(struct by_hand *h, u8 kind, u16 lane, i64 start, i64 end) {
  h->spans[h->n] = (struct span){.start = start,
                                 .end = end,
                                 .kind = kind,
                                 .lane = lane,
                                 .link = INDEX_NONE,
                                 .launch = INDEX_NONE};
  return h->n++;
}

static void run(struct by_hand *h, u8 kind, u16 lane, i64 launched, i64 start, i64 end) {
  u32 host = add_span(h, SPAN_LAUNCH, HOST, launched, launched + 5000);
  u32 device = add_span(h, kind, lane, start, end);
  h->spans[host].link = device;
  h->spans[device].launch = h->spans[device].link = host;
}

/* Four kernels per step. */
static struct by_hand *one_ahead(void) {
  struct by_hand *h = calloc(1, sizeof(*h));
  i64 *begin = arena_array(&h->arena, STEPS, sizeof(i64));
  i64 *end = arena_array(&h->arena, STEPS, sizeof(i64));
  for (i64 s = 0; s < STEPS; s++) {
    begin[s] = s * STEP;
    end[s] = (s + 1) * STEP;
    for (i64 k = 0; k < 4; k++) {
      i64 start = s * STEP + AHEAD + k * STEP / 4;
      run(h, SPAN_KERNEL, COMPUTE, s * STEP + 10000 * (k + 1), start, start + STEP / 4);
    }
  }
  h->rank = (struct rank){
      .host = "host", .closed = true, .launches = 1, .gpu_kernels = 1, .end = (STEPS + 3) * STEP};
  h->model = (struct model){.run = "by hand",
                            .world_size = 1,
                            .n_ranks = 1,
                            .ranks = &h->rank,
                            .clock_residual_us = NAN,
                            .end = h->rank.end,
                            .internal = h};
  h->model.steps = (struct steps){
      .n = STEPS, .method = "step marks", .confidence = 1, .begin = begin, .end = end};
  h->ring_begin = NS_UNKNOWN;
  return h;
}

static const struct by_hand *sorting;
static int by_start(const void *left, const void *right) {
  const struct span *a = &sorting->spans[*(const u32 *)left],
                    *b = &sorting->spans[*(const u32 *)right];
  return a->start < b->start ? -1 : a->start > b->start;
}

static int give_timeline(const struct model *model, u32 rank, struct timeline *timeline) {
  static struct lane lanes[] = {{false, 0, "main"}, {true, 0, "compute"}, {true, 1, "other"}};
  const struct by_hand *h = model->internal;
  u32 order[MOST_SPANS], place[MOST_SPANS];
  struct span *spans = malloc(MOST_SPANS * sizeof(*spans));
  struct interval *compute = malloc(MOST_SPANS * sizeof(*compute));
  for (u32 i = 0; i < h->n; i++)
    order[i] = i;
  sorting = h;
  qsort(order, h->n, sizeof(*order), by_start);
  for (u32 i = 0; i < h->n; i++)
    place[order[i]] = i;
  *timeline = (struct timeline){.rank = rank,
                                .spans = spans,
                                .n_spans = h->n,
                                .lanes = lanes,
                                .n_lanes = 3,
                                .on_gpu = true,
                                .has_compute = true,
                                .has_comm = true,
                                .has_memcpy = true,
                                .ring_begin = h->ring_begin};
  timeline->compute.at = compute;
  for (u32 i = 0; i < h->n; i++) {
    spans[i] = h->spans[order[i]];
    if (spans[i].link != INDEX_NONE)
      spans[i].link = place[spans[i].link];
    if (spans[i].launch != INDEX_NONE)
      spans[i].launch = place[spans[i].launch];
    if (spans[i].kind != SPAN_KERNEL || spans[i].lane != COMPUTE)
      continue;
    struct intervals *union_of = &timeline->compute;
    if (union_of->n && compute[union_of->n - 1].end == spans[i].start)
      compute[union_of->n - 1].end = spans[i].end;
    else
      compute[union_of->n++] = (struct interval){spans[i].start, spans[i].end};
  }
  return 0;
}

static void take_timeline(struct timeline *timeline) {
  free(timeline->spans);
  free(timeline->compute.at);
}

static const char *no_name(const struct timeline *timeline, u32 name) {
  (void)timeline;
  (void)name;
  return "kernel";
}

static struct results *analyse_by_hand(struct by_hand *h) {
  static const struct timeline_source source = {give_timeline, take_timeline, no_name};
  const struct analyse_options options = no_options();
  return analyse_with(&h->model, &options, &source);
}

static void end_by_hand(struct by_hand *h, struct results *r) {
  results_free(r);
  arena_release(&h->arena);
  free(h);
}

/* Every step is as long as its work, except the first, which begins on the host. */
static void assert_steps(const struct results *r, u32 from, u32 to) {
  for (u32 s = from; s < to; s++)
    assert_near(r->step_ms[s], s ? 1 : 2.5, 1e-9);
}

static void work_beside_the_steps_ends_none(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  run(h, SPAN_MEMCPY, OTHER, 3 * STEP + 60000, 3 * STEP + 70000, 9 * STEP);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, STEPS);
  assert_near(r->ranks[0].median_compute_ms, 1, 1e-9);
  end_by_hand(h, r);
}

/* As to a checkpoint, in pinned memory, while the next step is computed already. */
static void copies_beside_the_next_step_end_none(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  run(h, SPAN_MEMCPY, OTHER, 3 * STEP + 60000, 3 * STEP + 70000, 4 * STEP + AHEAD + 300000);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, STEPS);
  end_by_hand(h, r);
}

/* Like a gather of parameters after the optimizer: the step ends when this work ends. */
static void work_of_another_stream_is_part_of_the_step(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  i64 end = 4 * STEP + AHEAD;
  run(h, SPAN_KERNEL, OTHER, 3 * STEP + 60000, end, end + 300000);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, 3);
  assert_near(r->step_ms[3], 1.3, 1e-9);
  assert_near(r->step_ms[4], 0.7, 1e-9);
  assert_steps(r, 5, STEPS);
  end_by_hand(h, r);
}

/* A library whose launches are not seen, and in each step a launch that runs nothing. */
static void work_of_unseen_launches_follows_what_ran_before(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  for (u32 i = 0, k = 0; i < h->n; i++)
    if (h->spans[i].kind == SPAN_KERNEL && k++ % 4 == 3) {
      h->spans[h->spans[i].launch] = h->spans[0]; /* a copy of the first launch replaces it */
      h->spans[i].launch = h->spans[i].link = INDEX_NONE;
    }
  for (i64 s = 0; s < STEPS; s++)
    add_span(h, SPAN_LAUNCH, HOST, s * STEP + 900000, s * STEP + 905000);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, STEPS);
  end_by_hand(h, r);
}

/* Removes the kernels that were launched in the steps [from, to). */
static void forget_work(struct by_hand *h, i64 from, i64 to) {
  u32 n = 0;
  for (u32 i = 0; i < h->n; i += 2) {
    i64 step = h->spans[i].start / STEP;
    bool seen = step < from || step >= to;
    struct span work = h->spans[i + 1];
    h->spans[n] = h->spans[i];
    h->spans[n].link = seen ? n + 1 : INDEX_NONE;
    work.launch = work.link = n++;
    if (seen)
      h->spans[n++] = work;
  }
  h->n = n;
}

/* Such steps end on the host, and the length of a step with one boundary on the host and one on the
 * GPU is unknown. */
static void steps_of_which_nothing_was_seen(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  forget_work(h, 5, 7);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, 5);
  assert_true(isnan(r->step_ms[5]) && isnan(r->step_ms[7]));
  assert_near(r->step_ms[6], 1, 1e-9); /* measured on the host */
  assert_steps(r, 8, STEPS);
  assert_near(coverage_of(r, "ends of steps on the GPU"), 9.0 / STEPS, 1e-9);
  end_by_hand(h, r);
}

/* A kernel whose launch was not seen, long after: it does not end the last step that was seen. */
static void later_work_does_not_end_an_earlier_step(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  forget_work(h, 4, 8);
  add_span(h, SPAN_KERNEL, COMPUTE, 7 * STEP + AHEAD + STEP / 2, 8 * STEP + AHEAD);
  struct results *r = analyse_by_hand(h);
  assert_steps(r, 0, 4);
  assert_steps(r, 9, STEPS);
  end_by_hand(h, r);
}

static void overwritten_work_is_not_known(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  h->ring_begin = 6 * STEP - 1000;
  struct results *r = analyse_by_hand(h);
  for (u32 s = 0; s < 5; s++)
    assert_near(r->step_ms[s], 1, 1e-9); /* measured on the host */
  assert_true(isnan(r->step_ms[5]));
  assert_steps(r, 6, STEPS);
  assert_near(r->ranks[0].mean_compute_ms, 1, 1e-9);
  end_by_hand(h, r);
}

/* On one GPU no collective shows that the first steps were slow. */
static void warmup_is_found_from_gpu_times(void **state) {
  (void)state;
  struct by_hand *h = one_ahead();
  i64 late = 0, begin = 0;
  for (u32 i = 0; i < h->n; i += 2) { /* steps 0 and 1 take three times as long, a kernel each */
    struct span *kernel = &h->spans[i + 1];
    begin = kernel->start + late;
    late += i < 16 ? STEP / 2 : 0;
    kernel->start = begin;
    kernel->end += late;
  }
  h->rank.end += late;
  h->model.steps.warmup = 1;
  h->model.steps.warmup_by_lengths = true;
  struct results *r = analyse_by_hand(h);
  assert_near(r->warmup_excluded, 2, 0);
  assert_near(r->step_mean_ms, 1, 1e-9);
  assert_near(r->ranks[0].mean_compute_ms, 1, 1e-9);
  end_by_hand(h, r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_FOLDER(steps_hold_what_was_launched_in_them),
      WITH_FOLDER(each_step_is_whole),
      WITH_FOLDER(ranges_of_the_optimizer_end_there_too),
      WITH_FOLDER(a_host_that_waits_ends_its_steps),
      WITH_FOLDER(collectives_alone_are_enough),
      WITH_FOLDER(without_gpu_times_steps_end_on_the_host),
      WITH_FOLDER(a_run_ends_with_its_last_work),
      WITH_FOLDER(marks_of_a_profiler_end_on_the_host),
      WITH_FOLDER(a_recording_that_begins_amid_work),
      WITH_FOLDER(steps_that_the_gpu_never_ended_have_no_length),
      cmocka_unit_test(work_beside_the_steps_ends_none),
      cmocka_unit_test(copies_beside_the_next_step_end_none),
      cmocka_unit_test(work_of_another_stream_is_part_of_the_step),
      cmocka_unit_test(work_of_unseen_launches_follows_what_ran_before),
      cmocka_unit_test(steps_of_which_nothing_was_seen),
      cmocka_unit_test(later_work_does_not_end_an_earlier_step),
      cmocka_unit_test(overwritten_work_is_not_known),
      cmocka_unit_test(warmup_is_found_from_gpu_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
