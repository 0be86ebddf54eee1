/* SPDX-License-Identifier: MIT
 *
 * Where a figure becomes a finding. Each has its reason; docs/findings.md quotes them.
 */
#pragma once

/* Of a finding's saving: less in common with others is rounding. */
#define SAVING_OVERLAP 0.01

/* A cause of time that another finding only sums up: four fifths of what it saves are in that sum,
 * and it is half of it, or something else is the better thing to begin with. */
#define CAUSE_WITHIN 0.8
#define CAUSE_LEAST 0.5

/* A twentieth of the step: below it, the run-to-run spread of an ordinary cluster hides the gain,
 * and changing a job for it is seldom worth anyone's day. */
#define WORTH_MENTIONING 0.05

/* A fifth of the step: more than one GPU in five is doing nothing for the model. */
#define SAVING_ALARM 0.20

/* The chance of naming any rank at all in a run in which no rank is slow, after Bonferroni: one
 * report in a hundred, so that twenty clean runs stay clean. */
#define STRAGGLER_SIGNIFICANCE 0.01

/* Who costs less than this share of the step is named only if chance does that more seldom: nobody
 * would look for it long. Those who really are so are far below that in runs of any length. */
#define STRAGGLER_SMALL 0.02
#define STRAGGLER_SMALL_SIGNIFICANCE 0.001

/* A persistent straggler is last more often than all its peers together. */
#define STRAGGLER_MAJORITY 0.5

/* A rank that is late only in a stretch of steps: it is late in most of them and in few others,
 * they are more than a hiccup of the machine, and the run loses this share of its time. */
#define STRETCH_INSIDE 0.7
#define STRETCH_OUTSIDE 0.2
#define STRETCH_MIN_STEPS 10
#define STRETCH_OF_RUN 0.01

/* A rank that is late at times is so in this share of the steps. A checkpoint comes less often. */
#define AT_TIMES_LEAST 0.06

/* The share of the wait caused by a straggler that its "own" time must explain to be given as the
 * reason. */
#define REASON_SHARE 0.5

/* A line at which peers spend less than this share of what a straggler spends is its own: no slow
 * device explains it. */
#define LINE_OF_ONE 0.1

/* Ninety-fifth percentile over median, and coefficient of variation, of step time. Steps of a
 * healthy job vary by a few percent; a fifth more at the tail is an event, not noise. */
#define JITTER_TAIL 0.20
#define JITTER_VARIATION 0.10
#define JITTER_MIN_STEPS 20 /* below that the 95th percentile is one step's luck */

/* Where only time shows it, a step that contains something other than training takes at least 1.5
 * times as long: smaller differences also come from steps of unequal length. It comes at a fixed
 * distance, and one report in a hundred may find such a distance by chance. Where its content shows
 * it, such a kind of steps must take a tenth longer: less, as the all_reduce of a loss, is part of
 * training. So is what more than a quarter of the steps contain. */
#define OTHER_WORK_OF_STEP 0.5
#define OTHER_WORK_OF_CONTENT 0.1
#define OTHER_WORK_SIGNIFICANCE 0.01
#define OTHER_WORK_MOST_STEPS 0.25

/* Of the long steps in which one rank, or one host, works alone: in as many a period shows. Every
 * eighth step is a half of every fourth. */
#define PERIOD_OF_ONE 0.6

/* A step that is a tenth longer from some moment on. Slower drifts are those of clocks and sequence
 * lengths; and a change must last longer than a checkpoint or an evaluation does. */
#define FAIL_SLOW_RATIO 0.10
#define FAIL_SLOW_MIN_STEPS 20
#define FAIL_SLOW_SIDE 5

/* Backward is about twice forward, thrice where activations are recomputed; an optimizer that reads
 * and writes each parameter once is far below a fifth of the step unless batches are tiny. */
#define BACKWARD_OVER_FORWARD 4.0
#define BACKWARD_OF_STEP 0.5
#define OPTIMIZER_OF_STEP 0.20

/* A tenth of the GPU's time without work, if most kernels are so short (under 10 us) that launching
 * them takes longer than running them. */
#define LAUNCH_BOUND_SHARE 0.10
#define LAUNCH_BOUND_SHORT 0.5

/* Tuned dense transformers reach 0.40 to 0.55 of dense BF16 peak (PaLM 0.46, Llama 3 405B 0.38 to
 * 0.43 at 8,192 to 16,384 GPUs); below 0.30 something can be improved. */
#define MFU_LOW 0.30

/* What compute of a tuned job reaches while it runs; see above. */
#define MFU_TUNED 0.45

/* 1.5 times the median of the same transfers elsewhere: more than the spread between healthy links,
 * less than a link at half speed. */
#define SLOW_LINK_RATIO 1.5
#define SLOW_LINK_MIN_PEERS 3

/* At a slow 1 GB/s these bytes take 16 us: less than the call itself. */
#define SMALL_CALL_BYTES 16384

/* A free GPU begins launched work within some microseconds, for a graph within tens of them. Work
 * that begins this much later waited for something. */
#define LONGEST_LATENCY 100000 /* ns */

/* Steps in which CUDA graphs are captured, from which on that is no start-up: a few may be left of
 * a warm-up. */
#define RECAPTURE_STEPS 3u

/* What-ifs are shown as reliable if a replay of the unedited step gives the step back to within
 * this share, and if at most this share of the path is time without a recorded reason. */
#define REPLAY_TOLERANCE 0.01
#define PATH_UNKNOWN_LIMIT 0.25

/* Some ranks are slow together if a step without what they have more than their peers saves at
 * least this share of what it would save if all ranks were equal. */
#define EQUALS_SHARE 0.8

/* Share of calls whose real span must be known before their sum represents all of them. */
#define COVERAGE_ENOUGH 0.99

/* Savings that differ by less than this share of the larger, or by two standard errors of the mean
 * step, may be in the other order in the next run. */
#define SAVING_LEAST_MARGIN 0.10

/* Of the time that threads could run, what they waited for a core: a tenth is no chance of the
 * scheduler's, a quarter makes every other time of the run doubtful. And of the wall, since threads
 * that run now and then wait a little each time. A look of less than so many seconds tells nothing.
 * Ranks that want this many times the cores they have want too many by themselves. Where ranks wait
 * for cores alike, chance may still lay a tenth of it on one of them: that is twice the deviation
 * of 800 waits of one length. A lack that makes up three quarters of what a finding would save
 * may be all of it: neither is known better. */
#define OVERSUBSCRIBED_SHARE 0.10
#define OVERSUBSCRIBED_ALARM 0.25
#define OVERSUBSCRIBED_OF_WALL 0.05
#define OVERSUBSCRIBED_LEAST_S 0.2
#define OVERSUBSCRIBED_DEMAND 1.25
#define CORES_UNEVEN 0.10
#define CORES_EXPLAIN 0.75
#define OVERSUBSCRIBED_FULL                                                                        \
  0.8 /* of the cores, used by the ranks; the rest is others', or a quota */

/* Free memory that live blocks keep in place, as a share of what is reserved: a tenth is a batch
 * size step on most jobs; and below 64 MiB, three of the allocator's segments, gaps are no news. */
#define FRAGMENTATION_SHARE 0.10
#define FRAGMENTATION_LEAST_BYTES (64.0 * 1024 * 1024)

/* What one avoidable category must have of the peak to be worth changing code for; and those listed
 * beside it. */
#define PEAK_SHARE 0.15
#define PEAK_SHARE_BESIDE 0.05
#define PEAK_LEAST_BYTES (256.0 * 1024 * 1024)

/* Allocations below 1 MiB have a place only in samples (preload/torch/tensor_memory.c). Five
 * samples of which all are of one place: it has more than half of the rest, in 97 of 100 cases. */
#define SAMPLED_BELOW_BYTES (1 << 20)
#define GROWTH_LEAST_SAMPLES 5

/* Steps that a trend of memory must rest on, after those that make what stays. */
#define GROWTH_WARMUP_STEPS 1u
#define GROWTH_LEAST_STEPS 5u

/* Of the whole rise, what each third of the steps must have, and what must be left without the
 * largest rises: a leak that shows every tenth step is spread enough, a cache that is made once or
 * three models one after another are not. */
#define GROWTH_SPREAD 0.1
enum { GROWTH_JUMPS = 3 };

/* Growth worth a finding: the job would lose a hundredth of its peak in a thousand steps. */
#define GROWTH_SHARE_PER_STEP 1e-5
#define GROWTH_SOURCE_SHARE 0.5 /* of what was added, to name one place in the title */

/* Growth that fills the device after this many steps is still this run's problem. */
#define GROWTH_STEPS_TO_FULL 10000.0

/* Reserved at the peak, as a share of the device's memory. Context, libraries and NCCL's buffers
 * take 1 to 3 GB besides, up to a tenth of a device of 24 to 80 GB. */
#define OOM_RISK_HIGH 0.90
#define OOM_RISK_MEDIUM 0.80

/* Allocations of one size from one place. Each costs the host about a microsecond or two, which
 * shows from a thousand in a step on; or, without steps, a thousand in the recording that are half
 * of all. */
#define CHURN_LEAST 1000.0
#define CHURN_SHARE 0.5

/* Calls for memory of the device after the first steps: each waits for the device, milliseconds. */
#define CHURN_SEGMENTS_PER_STEP 1.0
#define CHURN_LEAST_SEGMENTS 8.0
#define CHURN_LEAST_ROUNDS 3.0 /* an allocator that is emptied once or twice is not a habit */

/* A value is a spike where it lies above the median of the few values before it by more than so
 * many standard deviations (from the median difference of neighbours in a window) and so large a
 * share. A loss that is a tenth higher has lost weeks of some runs; gradient norms and step times
 * scatter more. More than so many in a row are no spike but another level. */
#define SPIKE_WINDOW 50u
#define SPIKE_NEAR 11u
#define SPIKE_LEAST_BEFORE 10u
#define SPIKE_SCATTER 6.0
#define SPIKE_SHARE_LOSS 0.1
#define SPIKE_SHARE 0.5
#define SPIKE_LONGEST 10u

/* Spikes worth a finding: more than one in a run, or a hundredth of its steps. One may be chance.
 */
#define SPIKES_LEAST 2u

/* The loss has diverged where it ends above where it began, and above its best by half. */
#define DIVERGED_SHARE 0.5
#define DIVERGED_LEAST_VALUES 20u

/* A plateau: over the last half of the values, and at least so many, the loss changed by less than
 * so large a share, after it had fallen by more than ten times that. */
#define PLATEAU_LEAST_VALUES 50u
#define PLATEAU_SHARE 0.005

/* A loss that rose: over the whole run by so large a share, by its ends and by slope. Less is the
 * scatter of batches. One that never moved, over so many values and by less than PLATEAU_SHARE. */
#define RISING_SHARE 0.05

/* Steps within which spikes of different signals count as one event: the gradient's shows in the
 * next step's loss, and the job's print comes a step later. */
#define INSTABILITY_STEPS 3.0
#define INSTABILITY_SIGNIFICANCE 0.01

/* Of a step, saved if all ranks are equal: below it they do come together. */
#define LATE_LEAST 0.005
