/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <string.h>

#include "scenario.h"

#include "analyses/findings/findings.h"

struct scenario healthy_scenario(void) {
  return (struct scenario){.options = healthy_gpu(), .given = no_options()};
}

bool fires(const struct scenario *s, const char *id) {
  struct cluster *c = cluster_new(&s->options);
  if (s->spoil)
    s->spoil(c);
  struct results *r = cluster_analyse(c, &s->given);
  const struct finding *finding = finding_of(r, id);
  if (finding) {
    assert_true(strlen(finding->title) > 0 && strlen(finding->action) > 0);
    assert_non_null(strpbrk(finding->evidence, "0123456789"));
    assert_null(strstr(finding->evidence, "nan"));
    assert_true(isnan(finding->saving_s) || finding->saving_s >= 0);
  }
  for (u32 i = 1; i < r->n_findings; i++)
    assert_false(r->findings[i].saving_s > r->findings[i - 1].saving_s &&
                 !(finding_traits(r->findings[i].id) & SUMS_UP));
  bool found = finding != NULL;
  cluster_end(r, c);
  return found;
}
