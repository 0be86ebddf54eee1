/* SPDX-License-Identifier: MIT
 *
 * What is known of device memory: a part of struct results. The figures are one device's, the one
 * with the highest peak; by_rank has the few that every device has. Bytes unless said otherwise,
 * NAN where not known.
 */
#ifndef TSCOPE_MEMORY_RESULT_H
#define TSCOPE_MEMORY_RESULT_H

#include <stdbool.h>

#include "format/tscope_format.h"

/* Blocks alike, at the peak. */
struct memory_use {
  const char *category, *source; /* NULL: not known */
  double bytes, blocks, share;   /* of the peak */
  double lowers_peak_bytes; /* by how much without them; by_category alone has it; NAN not known */
};

/* Allocations alike, over the recording. */
struct memory_churn {
  const char *category, *source;
  double size_bytes; /* of each */
  double count, bytes;
  double per_step;    /* allocations a step, NAN without steps */
  double lifetime_ms; /* mean of those given back again, NAN if none was */
};

/* Live blocks and gaps between them, of a size above half of up_to_bytes. */
struct memory_size_class {
  double up_to_bytes, live_blocks, live_bytes, gaps, gap_bytes;
};

/* One segment, for a picture of it. */
struct memory_segment_picture {
  double bytes;
  const char *pool; /* "large", "small", "expandable", "private" */
  double *pieces;   /* [MEMORY_PIECES] share in use of equal pieces, from its begin to its end */
  u32 n_pieces;
};

enum { MEMORY_CURVE_POINTS = 1000, MEMORY_PIECES = 64, MEMORY_SEGMENTS_DRAWN = 60 };

/* Segments at the end. A gap is free memory between live blocks or the ends of its segment. */
struct memory_segments {
  double count, large, small, expandable, private_pool;
  double unused_bytes;   /* in segments without a live block: can be given back to the device */
  double stranded_bytes; /* gaps in all other segments: cannot */
  double gaps, largest_gap_bytes;
  double pinned_blocks, pinned_bytes; /* runs of live blocks up to 1 MiB between two gaps */
  double pinned_gap_bytes;            /* of the gaps that such runs keep apart */
  double obtained, returned;          /* calls for memory of the device while recording */
  double obtained_bytes, returned_bytes;
  double refetched; /* calls that obtained again what had been obtained and returned before */
  double rounds;    /* times that memory was given back before some was obtained again */
  bool expandable_known, expandable_would_help;
  double expandable_frees_bytes; /* at most, of peak_reserved_bytes */
  struct memory_size_class *by_size;
  u32 n_by_size;
  struct memory_segment_picture *largest; /* largest first */
  u32 n_largest;
};

/* One device of one rank. */
struct memory_device {
  double rank; /* global, NAN if the input does not say */
  double device;
  double peak_allocated_bytes, peak_reserved_bytes;
  double allocated_bytes, reserved_bytes, inactive_bytes;
  double fragmentation, growth_bytes_per_step;
  double out_of_memory; /* times */
};

struct memory_result {
  const char *reason; /* why nothing is known, NULL if something is */
  const char *origin; /* what the figures are from */
  double rank, device;
  double events, lost;
  double peak_allocated_bytes, peak_reserved_bytes;
  double peak_time_s, peak_step; /* since the first event; in which step */
  double peak_unused_bytes;      /* peak_reserved_bytes less peak_allocated_bytes */
  double allocated_bytes, reserved_bytes, inactive_bytes, pending_bytes,
      slack_bytes;                                         /* at the end */
  double before_bytes;                                     /* allocated before recording began */
  double fragmentation;                                    /* inactive / reserved at the end */
  double *curve_time_s, *curve_allocated, *curve_reserved; /* [n_curve] over the recording */
  u32 n_curve;
  double *step_peak_bytes; /* [n_step_peaks] most allocated in each step, NAN where not known */
  u32 n_step_peaks;        /* 0 where steps are not those of the report */
  double growth_bytes_per_step, growth_steps, growth_from_bytes, growth_to_bytes;
  const char *growth_reason;                   /* why unknown */
  const char *growth_source, *growth_category; /* of most that was added, NULL not known */
  double growth_source_share;
  double steps;
  const char *steps_method;
  bool steps_are_certain;                /* the recording marks them; else they are what repeats */
  double capacity_bytes, headroom_bytes; /* capacity less peak_reserved_bytes */
  const char *capacity_source;
  const char *oom_risk; /* "low", "medium", "high", "happened"; NULL if it cannot be told */
  double out_of_memory; /* times that memory ran out */
  double oom_requested_bytes, oom_free_bytes, oom_inactive_bytes; /* the last time */
  struct memory_use *live_at_peak; /* largest first; they sum to peak_allocated_bytes */
  u32 n_live_at_peak;
  struct memory_use *by_category; /* likewise, by category alone */
  u32 n_by_category;
  struct memory_churn *churn; /* most bytes first */
  u32 n_churn;
  double churn_allocations, churn_bytes; /* in all */
  struct memory_segments segments;
  struct memory_device *devices;
  u32 n_devices;
  const char **notes;
  u32 n_notes;
};

/* Nothing known. */
struct memory_result memory_result_unknown(void);

#endif
