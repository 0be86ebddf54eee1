/* SPDX-License-Identifier: MIT */
#include "analyses/analysis.h"

struct results *analyse(const struct model *model, const struct analyse_options *options) {
  static const struct timeline_source loaded = {timeline_load, timeline_release, timeline_name};
  return analyse_with(model, options, &loaded);
}
