/* SPDX-License-Identifier: MIT
 *
 * What the analyses see: one run, on one time axis. Built by import/ and join/, never
 * changed afterwards. Times are int64 nanoseconds since the run's origin (the earliest aligned
 * instant); NS_UNKNOWN where not known. Everything lives in the model's arena.
 *
 * The model keeps retained records whole (collectives, steps, phases). Detail (launches, GPU spans)
 * is not kept: timeline_load() (rank_timeline.h) decodes one rank at a time, so a run of any size
 * fits in memory.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/each.h"
#include "base/intervals.h"
#include "format/tscope_format.h"
#include "model/rank_end.h"

/* How one rank's clock was put on the common axis: aligned = local + offset + drift x time. */
struct clock_fit {
  bool aligned; /* with those of other ranks: see model.clock_aligned */
  u32 domain;   /* ranks with the same number share one clock: that of their host since its boot */
  i64 at_ns, offset_ns; /* the axis less its clock, when that says so much */
  double drift_ppm, drift_error_ppm;
  double error_us;   /* its clock is on the axis within this, from the first to the last collective
                        that ties it; 0 where its clock is the axis; NAN if not aligned */
  double reading_us; /* the error of reading the clock, also between ranks that share it */
  u32 collectives;   /* that the fit rests on; 0 where its clock is the axis */
};

/* A stretch of time in which a rank's GPU time came from one source. */
struct gpu_window {
  i64 start, end;
  i64 settled; /* by then all work is over that was launched before `start`, and so was not seen */
  const char *reason; /* as the trace says it */
  u8 clock;           /* enum tscope_gpu_clock */
};

/* CPU time between the first and the last look at it; NAN where not known. */
struct rank_scheduling {
  double seconds;         /* between them; 0: there were no two */
  double cpu_s;           /* that the process had */
  double wait_s;          /* its threads were runnable and did not run, all together */
  double training_wait_s; /* the part of it for threads that train: the main thread, and those whose
                             calls are recorded */
  double stolen_s;        /* time in which the host's processors ran other virtual machines */
  u32 threads, cores;     /* at the last look; cores that it may run on, 0 if not known */
  double quota;           /* cores that its control groups allow; NAN: no limit is known */
};

/* Running totals at this time. */
struct rank_look {
  i64 time;
  u64 cpu_ns, wait_ns, training_wait_ns; /* as in struct rank_scheduling */
};

struct rank_stall;

/* Where a rank's host and its GPU meet: data is copied between them, or the host waits. As far as
 * the ring goes back, and of so many ranks at most, evenly chosen: what all do, each of them shows.
 */
#define MEETING_RANKS 64u
enum meeting { MEETING_COPY_IN = 1, MEETING_COPY_OUT = 2, MEETING_WAIT = 4 };

struct rank_meeting {
  i64 start, end; /* of the host's call */
  u64 bytes;      /* of a copy */
  u8 what;        /* enum meeting */
};

struct rank {
  u32 rank;       /* global rank */
  u32 local_rank; /* INDEX_NONE if unknown */
  u32 pid;
  const char *host;
  u32 host_number; /* ranks that ran on one host have the same; hosts that are not known come after
                      the n_hosts that are, one for each rank */
  const char *path;
  const char *info[32]; /* by enum tscope_info; NULL if unknown */
  bool closed;          /* ended normally */
  char running; /* it had not ended when the trace was read: its state in /proc, such as R, S, D, or
                   T if it was stopped; 0 if that is not known */
  bool may_run; /* the same of one on another host, if it was alive lately */
  bool last_moments_missing; /* it did not, and what it recorded last may not be in the file */
  struct rank_end ending;    /* how the process ended */
  const char *damage;        /* what is wrong with the file, NULL if nothing */
  u64 records;
  u64 lost[TSCOPE_LOSS_REASONS];
  u64 launches;    /* kernel and graph launch calls seen on the host */
  u64 gpu_kernels; /* kernels seen on the GPU */
  u64 collective_calls;
  u64 collective_runs; /* those with a known actual span */
  u64 replayed_runs;   /* of these, calls in replays of CUDA graphs */
  u64 replayed_known;  /* of these, identified in the replay by their nodes */
  enum tscope_gpu_clock gpu_clock;
  const char *gpu_clock_reason;
  u64 gpu_dropped, gpu_invalid;
  u64 gpu_event_error_ns;         /* largest error of a time from events; 0: no such times */
  u64 gpu_overhead_ns;            /* time that the GPU clock source itself took, as it says */
  struct gpu_window *gpu_windows; /* in order, without gaps; empty if the trace does not say */
  u32 n_gpu_windows;
  i64 begin, end; /* first and last instant seen */
  struct clock_fit clock;
  struct rank_scheduling scheduling;
  const struct rank_look *looks; /* in order */
  u32 n_looks;
  const struct rank_meeting *meetings; /* in order */
  u32 n_meetings;
  u64 samples, unread_samples; /* of lines: stacks read, and those that could not be */
  u64 cost_helper_cpu_ns, cost_startup_ns, cost_slow_path_ns, cost_ns_per_record;
  u64 file_bytes;
  struct rank_stall *stalls; /* stalls.h: moments in which its process stalled, in order */
  u32 n_stalls;
};

struct comm {
  u64 identity;
  u64 parent;
  const char *name; /* NULL if it has none */
  u32 size;         /* 0 if unknown */
  u32 *members;     /* [size] index into model.ranks, INDEX_NONE where that rank was not found */
  u8 backend;       /* enum tscope_backend */
  u8 library;       /* enum comm_library: its collectives are kernels without calls; 0: calls */
};

/* The name of a communicator, or a short form of its identity with its size, if that is known. In
 * the arena. */
const char *comm_label(const char *name, u64 identity, u32 size, struct arena *arena);

/* "all_reduce 41 of dp": a call in words, everywhere. Without its number if that is below 0,
 * without its communicator if that is NULL. */
char *call_name(struct arena *arena, const char *op, i64 seq, const char *comm);

/* One rank's part in one collective. start/end are where it really ran (GPU kernel, gloo worker):
 * NS_UNKNOWN if only the host call was seen. call_end is NS_UNKNOWN if it never returned. */
struct arrival {
  i64 call_start, call_end;
  i64 start, end;
  u32 rank;       /* index into model.ranks */
  u32 collective; /* index into model.collectives, INDEX_NONE if unmatched */
  u32 group;      /* 0 outside any group */
  i32 step;       /* index into model.steps, -1 outside */
  u16 stream;
  u8 op;    /* as this rank called it: the other end of a SEND is a RECV */
  u8 times; /* enum kept_times; if left out, call_start and call_end are where its step begins */
};

/* Whether it is known when it ran. */
static inline bool arrival_has_run(const struct arrival *arrival) {
  return arrival->start != NS_UNKNOWN && arrival->end != NS_UNKNOWN;
}

/* When it ended, else when its call did; NS_UNKNOWN. */
static inline i64 arrival_left(const struct arrival *arrival) {
  return arrival->end != NS_UNKNOWN ? arrival->end : arrival->call_end;
}

/* One collective over all its members, matched by (communicator, sequence), or one send with its
 * receive (arrivals: sender, receiver; both ops are TSCOPE_OP_SEND's family). */
struct collective {
  u32 comm; /* index into model.comms */
  u32 seq;
  u64 count;
  u64 bytes; /* S of the bus bandwidth formulas: the full array for all_gather/reduce_scatter */
  u32 first_arrival, n_arrivals; /* in model.arrivals */
  i64 last_start;                /* max over arrivals of start; NS_UNKNOWN if any is unknown, or is
                                    of a rank whose clock is not aligned with those of others */
  i32 step;                      /* step of its first arrival, -1 outside */
  i32 root;                      /* of a broadcast: number of the member that sends, -1 not known */
  const char *algorithm, *protocol; /* in NCCL's words; NULL if not known */
  const char *asked;                /* what the program asked for; NULL */
  u64 user_tag;                     /* that it gave the call; 0 */
  u16 channels;                     /* 0 if not known */
  u8 op, dtype, redop;
  bool complete;   /* every member seen */
  bool mismatched; /* members disagree on op, count or dtype */
};

/* Which ends of a step are known on the GPU. */
enum step_known { STEP_BEGIN_KNOWN = 1, STEP_END_KNOWN = 2 };

/* X(NAME, "name in reports"): a step is one of training, or an iteration of an inference engine by
 * what its batch holds: prompts that are read, answers that grow by a token each, or both. */
#define STEP_KINDS(X)                                                                              \
  X(TRAINING, "training")                                                                          \
  X(PREFILL, "prefill")                                                                            \
  X(DECODE, "decode")                                                                              \
  X(MIXED, "prefill and decode")

enum step_kind {
#define X(NAME, text) STEP_##NAME,
  STEP_KINDS(X)
#undef X
      STEP_KINDS_COUNT
};

/* Of a long run the times of collectives are kept for some steps only (join/leave_times_out.h). */
enum kept_times {
  TIMES_KEPT,
  TIMES_OF_LONG_STEP, /* to see what such a step holds; not for figures of the usual step */
  TIMES_LEFT_OUT      /* of its collectives it is known that they ran, and not when */
};

/* Step boundaries: rank r's step s is [begin[s * n_ranks + r], end[s * n_ranks + r]). A step is
 * over when its host part is over and its GPU has done what the host had launched by then. Here
 * this is known as far as the retained records show it, from collectives; analyses also know
 * kernels. */
struct steps {
  u32 n;
  u32 first;       /* the number that the first one here has in the run: 0, or a of --steps a:b */
  u32 chosen_from; /* --steps left some out of so many; 0: all are here */
  u32 warmup;      /* this many first steps are left out of all statistics */
  bool warmup_by_lengths; /* they are those of model_count_warmup(); false: none is left out */
  const char *method;     /* what marks are ("step marks", or as the importer calls them), "NVTX
                             ranges",     "optimizer phases", "collective period", "backward passes",
                             "forward     passes", "repeated launches", "none": the first for which
                             there is     evidence; or "the engine's iterations" */
  double confidence;      /* share of ranks and positions that agree, 0..1; NAN for method none */
  bool open; /* nothing says where the last step ends: it ends with the last retained record */
  bool by_collectives;        /* a step ends with its last collective: kernels do not matter */
  bool by_pattern;            /* nothing names a step: what repeats may also be layers */
  i64 *begin, *end;           /* NS_UNKNOWN where a rank does not have the step */
  i64 *host_begin, *host_end; /* on the host alone; NULL: the same */
  u8 *ends_known;             /* enum step_known, or'ed; NULL: none is */
  u8 *kind;                   /* [n] enum step_kind; NULL: all are of training */
  u8 *times;                  /* [n] enum kept_times; NULL: all are kept */
};

/* Time of one rank in one step by phase, from PHASE records (or inferred: see phase_method). */
struct phase_times {
  i64 data, forward, backward, optimizer, other; /* NS_UNKNOWN where not known */
  u32 forwards, backwards; /* passes that begin in the step; recomputed ones are not counted */
  u32 batches;             /* loaded, with what finds the end of the data */
  i64 backward_begin;      /* of the first of these; only where there are backwards */
};

struct scalar {
  u32 rank, step;
  const char *name;
  i64 time;
  double value;
};

/* One start of the job: a launcher may start its ranks again, under the same name. */
struct attempt {
  u32 processes, hosts; /* that left a trace */
  u32 world_size;       /* 0 if not known */
};

/* What the report was made from: "tscope traces", 8 files. */
struct model_input {
  const char *what;
  u32 files;
};

struct arena;
struct kernel_names;
struct timeline_source; /* rank_timeline.h */

/* Facts that only some inputs have. They name ranks by their global numbers. There may be more or
 * fewer ranks than in model.ranks. */
struct flight_record; /* flight_record.h */
struct memory_origin; /* memory_history.h */
struct module_tree;   /* module_tree.h */

struct model {
  const char *run; /* identity */
  const char *command;
  u32 world_size; /* expected; 0 if unknown */
  u32 n_ranks, n_hosts, n_comms, n_collectives, n_arrivals, n_scalars;
  struct rank *ranks; /* sorted by global rank */
  struct comm *comms;
  struct collective *collectives; /* sorted by last_start (unknown ones last) */
  struct arrival *arrivals;       /* a collective's arrivals are adjacent */
  struct scalar *scalars;
  struct steps steps;
  struct phase_times *phases; /* [steps.n * n_ranks]; NULL if no rank has phases */
  const char *phase_method;   /* "PyTorch ranges", "inferred from ...", NULL if none */
  bool clock_aligned; /* most ranks are on one axis: times of those whose clock.aligned is set can
                         be compared with each other */
  const char *clock_method; /* "same host clock", "collective ends", "refused: ..." */
  double clock_residual_us; /* error between ranks that share a clock; NAN if not aligned */
  double clock_between_us;  /* largest error between two clocks; NAN: not aligned, or one clock */
  i64 begin, end;
  const char **notes; /* what readers must know about the input: files that cannot be read,
                         processes left out; one sentence each */
  u32 n_notes;
  struct model_input *inputs; /* none for models made by hand */
  u32 n_inputs;
  u32 attempt,
      n_attempts; /* which of `attempts` this is, from 1 on, the oldest first; 0: not known */
  struct attempt *attempts; /* [n_attempts]; NULL if there was one */
  i64 began_realtime_ns;    /* its first process, by its host's wall clock; 0: not known */
  u32 n_logs;               /* of inputs, logs of training values */
  const char *recorder;     /* what recorded the timelines, if not libtscope.so; else NULL */
  bool lengths_only;        /* it says how long steps and phases took, but not what ran in them */
  const struct timeline_source *timelines; /* NULL: no input has any, and n_ranks is 0 */
  const struct flight_record *flight;      /* of dumps; NULL if no input has them; the same below */
  const struct module_tree *modules;
  const struct memory_origin *memories; /* memory_history.h: each device's allocator */
  u32 n_memories;
  void *internal; /* arena and events */
};

/* Whether the source of GPU time saw all work of the rank's GPU in [begin, end): false if CUPTI
 * rested, or another client used it, for part of that time. */
bool model_gpu_seen(const struct rank *rank, i64 begin, i64 end);

/* Begin and end of a step. `gpu` gets the ends that are known on the GPU, else NS_UNKNOWN; sets
 * *known. If only one end is known on the GPU, and it is later than the host's, the step would look
 * longer or shorter than it was: then NS_UNKNOWN. */
struct interval step_on_gpu(struct interval host, struct interval gpu, u8 *known);

/* The stretches of time after `from` in which the source of GPU time saw all work of the rank's
 * GPU; the last is open at its end if nothing ended it. Lives in the arena. */
void model_gpu_known(const struct rank *rank, i64 from, struct arena *arena,
                     struct intervals *known);

/* Share of the run, at its end, for which the rings of all ranks still have the detail. */
double model_share_kept(const struct model *model);

/* How many first steps to leave out, from their lengths (NAN: not known). Always the first, since
 * it contains the start-up of libraries and caches. Also those after it, as long as they take more
 * than WARMUP_FACTOR x the median of the later half. If the lengths are those `of_hosts` that may
 * run ahead of their devices until they have to wait, also as long as they take less by the same
 * factor. At most a quarter of all. */
#define WARMUP_FACTOR 1.5
u32 model_count_warmup(const double *lengths, u32 n, bool of_hosts);

/* A collective as one rank called it, whatever its peers did. */
struct own_call {
  i64 start;
  u64 bytes;
  u8 op, dtype;
};

/* How many collectives a rank called on a communicator (index into comms) without an error. The
 * first ones, in order, are put into `calls`, as many as fit. */
u32 model_own_calls(const struct model *model, u32 rank, u32 comm, struct own_call *calls,
                    u32 room);

/* The training phase that a rank was in at an instant, innermost; NULL if none, or not known. */
const char *model_phase_at(const struct model *model, u32 rank, i64 time);

/* Index into steps, or -1, of an instant on a rank's host. */
i32 model_step_at(const struct model *model, u32 rank, i64 time);

/* Whether the times of all ranks can be compared. */
bool model_all_aligned(const struct model *model);

/* How far apart, at most, the times of one instant on two ranks can be; infinite where the ranks
 * are not on one axis. */
double model_clock_error_ns(const struct model *model, u32 a, u32 b);

/* When a rank was last seen to be alive: by its signs of life or by what it recorded. */
static inline i64 rank_alive_until(const struct rank *rank) {
  return MAX(rank->ending.alive, rank->end);
}

/* The place of a rank's step in the lists of struct steps, and in model.phases. */
static inline size_t cell_of_step(const struct model *model, u32 step, u32 rank) {
  return (size_t)step * model->n_ranks + rank;
}

/* When a rank's step began and ended on its host. */
static inline struct interval step_on_host(const struct model *model, u32 step, u32 rank) {
  const struct steps *steps = &model->steps;
  size_t cell = cell_of_step(model, step, rank);
  return steps->host_begin ? (struct interval){steps->host_begin[cell], steps->host_end[cell]}
                           : (struct interval){steps->begin[cell], steps->end[cell]};
}

/* The members of a collective, in order of ranks; of a message its sender, then its receiver. */
static inline struct arrival *members_of(const struct model *model, const struct collective *of) {
  return &model->arrivals[of->first_arrival];
}

#define FOR_EACH_MEMBER(model, of, member) FOR_EACH(members_of(model, of), (of)->n_arrivals, member)

/* The index of the rank with this number; INDEX_NONE if it is not here. */
u32 model_rank_index(const struct model *model, u32 rank);

/* Whether the job has ranks that were not found. */
static inline bool model_lacks_ranks(const struct model *model) {
  return model->n_ranks < model->world_size;
}

static inline u32 model_ranks_of_job(const struct model *model) {
  return model_lacks_ranks(model) ? model->world_size : model->n_ranks;
}

/* Lists them, in order; `ranks` has room for the whole world. How many. */
u32 model_missing_ranks(const struct model *model, u32 *ranks);

/* From what a process says of itself (rank.info); NAN if not known. */
double gpu_memory_bytes(const char *const *info);

/* Records that are known to be lost, for any reason. */
static inline u64 rank_lost(const struct rank *rank) {
  return TOTAL(u64, rank->lost, TSCOPE_LOSS_REASONS, one, *one);
}

/* In which the job was started, if a trace has it; NULL. */
static inline const char *model_folder(const struct model *model) {
  return model->n_ranks ? model->ranks[0].info[TSCOPE_INFO_DIRECTORY] : NULL;
}

/* Whether two ranks (indices) ran on one host since one boot. */
static inline bool model_same_host(const struct model *model, u32 a, u32 b) {
  return model->ranks[a].host_number == model->ranks[b].host_number;
}

/* The host that all marked ranks [n_ranks] ran on; NULL if they ran on several, or the job on one.
 */
const char *model_host_of(const struct model *model, const bool *ranks);

/* By the host's name and, as far as it is known (else NULL), its clock (TSCOPE_INFO_CLOCK). */
bool host_is_same(const char *name, const char *clock, const char *other_name,
                  const char *other_clock);

/* The largest of it between a rank and the members of a collective. */
double model_collective_error_ns(const struct model *model, const struct collective *collective,
                                 u32 rank);

/* When a member was ready for its collective: a call on the host when it is made, for its worker
 * may begin later, as it also runs the calls before; one of NCCL, which only queues work for the
 * GPU, when that began. NS_UNKNOWN where it is not known, or left out. */
i64 model_arrival_ready(const struct model *model, const struct arrival *arrival);

/* The member (index of its rank) that was ready last, how long after the one before, and for how
 * long the mean other member waited for it. INDEX_NONE and NS_UNKNOWN where the order is not known:
 * a member or its times are missing, or another came no earlier than the error between the clocks.
 */
struct last_member {
  u32 rank;
  i64 by, waited;
};
struct last_member model_last_member(const struct model *model, const struct collective *of);

/* All collectives by communicator, each in order: `order` gets n_collectives indices. */
void model_list_by_comm(const struct model *model, u32 *order);

/* [n_ranks] The ranks whose files are older than those of their peers: these ended collectives for
 * which the rank was needed after its file ends. So it was alive then, and its file does not show
 * how it ended. In the arena. */
bool *model_find_older_files(const struct model *model, struct arena *arena);

struct model_options {
  const char *run;                   /* which run of the directory, NULL for the newest */
  u32 attempt;                       /* which start of the run, from 1 on; 0: the last */
  const char *steps;                 /* --steps a:b, b in it, or a; NULL for all */
  struct kernel_names *kernel_names; /* kernels.h: which kernels communicate; NULL: the built-in */
  bool include_warmup;
  u32 timed_steps;  /* keep the times of collectives of so many steps at most; 0: of all */
  u64 quick;        /* for recordings that are one text: read only this many events; 0 for all */
  unsigned threads; /* 0: one per core */
  void (*progress)(void *user, const char *what, double fraction); /* may be NULL */
  void *user;
  /* Called when an input has delivered its ranks (building.h), before they are joined; may add
   * ranks. NULL: nobody is. */
  void (*before_join)(void *joiner, struct model *model);
  void *joiner;
};

/* An empty model: no ranks, no facts. */
struct model *model_new(void);
void model_free(struct model *model);

/* Adds a sentence about the input, which the model keeps. */
void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
