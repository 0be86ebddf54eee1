/* SPDX-License-Identifier: MIT */
#include "top/top_outputs.h"

#include <math.h>

#include "base/printable.h"
#include "top/top_metrics.def"

static const char gauge[] = "gauge", counter[] = "counter";

static const struct {
  const char *name, *help, *type;
} rank_metrics[] =
    {
#define M(type, name, help, value) {name, help, type},
        TSCOPE_TOP_RANK_METRICS(M)
#undef M
},
  job_metrics[] = {
#define J(type, name, help, value) {name, help, type},
      TSCOPE_TOP_JOB_METRICS(J)
#undef J
};
enum {
  RANK_METRICS = LENGTH_OF(rank_metrics),
  JOB_METRICS = LENGTH_OF(job_metrics),
};

static double rank_value(const struct live_rank *rank, unsigned metric) {
  const double values[] = {
#define M(type, name, help, value) value,
      TSCOPE_TOP_RANK_METRICS(M)
#undef M
  };
  return values[metric];
}

static double job_value(const struct live_view *view, unsigned metric) {
  const double values[] = {
#define J(type, name, help, value) value,
      TSCOPE_TOP_JOB_METRICS(J)
#undef J
  };
  return values[metric];
}

static void put_value(double value, FILE *out) {
  fprintf(out, "} %.*g\n", 15, value);
}

static void put_job(const struct live_view *view, FILE *out) {
  for (unsigned m = 0; m < JOB_METRICS; m++) {
    double value = job_value(view, m);
    print_metric(job_metrics[m].name, job_metrics[m].help, job_metrics[m].type, out);
    if (!isfinite(value))
      continue;
    fprintf(out, "%s{", job_metrics[m].name);
    print_label("run", view->run->name, out);
    put_value(value, out);
  }
}

static void put_rank_label(const struct live_rank *rank, FILE *out) {
  fprintf(out, ",rank=\"%u\"", rank->rank);
}

static void put_info(const struct live_view *view, FILE *out) {
  print_metric("tscope_rank", "which host a rank is on", gauge, out);
  FOR_EACH(view->ranks, view->n_ranks, one) {
    fputs("tscope_rank{", out);
    print_label("run", view->run->name, out);
    put_rank_label(one, out);
    fputc(',', out);
    print_label("host", view->hosts[one->host].name, out);
    put_value(1, out);
  }
}

void top_metrics_write(const struct live_view *view, FILE *out) {
  if (view) {
    put_job(view, out);
    put_info(view, out);
  }
  for (unsigned m = 0; view && m < RANK_METRICS; m++) {
    print_metric(rank_metrics[m].name, rank_metrics[m].help, rank_metrics[m].type, out);
    FOR_EACH(view->ranks, view->n_ranks, rank) {
      double value = rank_value(rank, m);
      if (!isfinite(value))
        continue;
      fprintf(out, "%s%s{", rank_metrics[m].name, rank_metrics[m].type == counter ? "_total" : "");
      print_label("run", view->run->name, out);
      put_rank_label(rank, out);
      put_value(value, out);
    }
  }
  fputs("# EOF\n", out);
}
