/* SPDX-License-Identifier: MIT */
#include "analyses/analysis.h"

int analyse(const struct model *model, const struct analyse_options *options,
            struct results **results) {
  static const struct timeline_source loaded = {timeline_load, timeline_release, timeline_name};
  return analyse_with(model, options, &loaded, results);
}
