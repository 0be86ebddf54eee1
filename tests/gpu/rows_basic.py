# SPDX-License-Identifier: MIT
"""Rows of scripts/gpu-check about a program in C, a training step and collectives, one function for each
row. A row returns its measurements as text. It raises Failed if it does not hold, and NotHere if it
cannot be checked on this machine."""
import statistics

import work_parts
from judging import clock_sources, expect, gpu_parts, modes
from machine import AUTO, BARE, CUPTI, EVENTS, OFF, NotHere
from read_trace import ENUMS, LAYOUTS, PENDING

STEPS = 10
WITHIN = 0.01  # of the time from torch.profiler
CLOCK_ERROR_US = 20  # error of the conversion from the GPU's clock to the host's
# The collectives that NCCL does not implement with sends and receives.
ONE_KERNEL = {ENUMS["OPS"][name] for name in ("ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER",
                                              "REDUCE_SCATTER")}


def losses_are_the_same(machine):
    """Losses are bit for bit the same as without the shim, in every mode, with deterministic algorithms"""
    bare = machine.work("train", mode=BARE).result
    for mode in modes(machine):
        result = machine.work("train", mode=mode).result
        expect(result["losses"] == bare["losses"], f"{mode}: losses {result['losses']}, without the "
               f"shim {bare['losses']}")
        expect(result["peak_allocated"] == bare["peak_allocated"], f"{mode}: tensor memory differs")
    return f"{len(bare['losses'])} losses in each of {len(modes(machine))} modes; the last is {bare['losses'][-1]}"


def says_nothing(machine):
    """tscope prints nothing to the job's standard error, and its standard output is unchanged"""
    for mode in modes(machine):
        run = machine.work("train", mode=mode)
        ours = [line for line in run.errors.splitlines() if line.startswith("tscope")]
        expect(not ours, f"{mode}: {ours}")
        expect(len(run.lines) == 1, f"{mode}: {run.lines}")
        expect(bool(run.traces) == (mode != OFF), f"{mode}: {len(run.traces)} traces")
    return ", ".join(modes(machine))


def torch_profiler_alone(machine, name=""):
    result = machine.work("train", "--profiler", mode=BARE, name=name).result["profiler"]
    if not result:
        raise NotHere("torch.profiler sees no kernels on this machine")
    return result


def training_time(parts):
    return parts[0]["kernels"]["seconds"]


def kernels_as_torch_profiler(machine):
    """The same number of each kernel as torch.profiler; their time within 1 %, median of pairs"""
    result = torch_profiler_alone(machine)
    seen = gpu_parts(machine.work("train", mode=CUPTI).trace)
    expect(len(result) == len(seen) == 2, f"{len(result)} and {len(seen)} parts")
    total, difference = 0, []
    for theirs, ours in zip(result, seen):
        theirs, ours = theirs["kernels"], ours["kernels"]
        expect(ours["names"] == theirs["names"],
               "kernels differ: " + work_parts.difference(ours["names"], theirs["names"]))
        total += sum(ours["names"].values())
        difference.append(ours["seconds"] / theirs["seconds"] - 1)
    pairs = [difference[0]]
    for n in range(2 if machine.real else 0):  # the GPU's own clocks differ from run to run
        alone = training_time(torch_profiler_alone(machine, f"pair {n}"))
        ours = gpu_parts(machine.work("train", mode=CUPTI, name=f"pair {n}").trace)
        pairs.append(training_time(ours) / alone - 1)
    middle = statistics.median(pairs)
    summary = ", ".join(f"{pair:+.3%}" for pair in pairs)
    expect(abs(middle) <= WITHIN, f"time of the training's kernels, run by run: {summary}")
    return f"{total} kernels; time in training {middle:+.3%} ({summary}), in GEMMs {difference[1]:+.3%}"


def every_launch_once(machine):
    """Each kernel that ran has one launch call in the trace, from whichever API"""
    trace = machine.work("train", mode=CUPTI).trace
    names = {shape.shape: trace.strings[shape.kernel] for shape in trace.records["Shape"]}
    calls, ran = {}, {}
    for call in trace.records["Launch"]:
        calls[names.get(call.shape, "")] = calls.get(names.get(call.shape, ""), 0) + 1
    for span in trace.records["GpuKernel"]:
        ran[trace.strings[span.name]] = ran.get(trace.strings[span.name], 0) + 1
    expect(calls == ran, "calls and kernels differ: " + work_parts.difference(calls, ran))
    return f"{sum(ran.values())} kernels"


def copies_as_torch_profiler(machine):
    """The same numbers of copies and fills as torch.profiler sees"""
    result = torch_profiler_alone(machine)
    seen = gpu_parts(machine.work("train", mode=CUPTI).trace)
    numbers = []
    for kind in ("copies", "fills"):
        theirs, ours = (sum(sum(part.get(kind, {"names": {}})["names"].values()) for part in parts)
                        for parts in (result, seen))
        expect(ours == theirs, f"{ours} {kind}, torch.profiler saw {theirs}")
        numbers.append(f"{ours} {kind}")
    return ", ".join(numbers)


def beside_torch_profiler(machine):
    """torch.profiler sees the same with and without tscope, which stops using CUPTI meanwhile and records that"""
    alone = torch_profiler_alone(machine)
    run = machine.work("train", "--profiler", mode=AUTO)
    beside = run.result["profiler"]
    for one, other in zip(alone, beside):
        for kind in one:
            expect(other.get(kind, {}).get("names") == one[kind]["names"], f"{kind} differ: "
                   + work_parts.difference(other.get(kind, {}).get("names", {}), one[kind]["names"]))
    expect(run.result["losses"] == machine.work("train").result["losses"], "losses differ")
    bare = machine.work("train", "--profiler", mode=BARE).result
    for what, name in (("kernels in its further sessions", "sessions"),
                       ("kernels on a wrong clock", "too_early")):
        expect(run.result[name] == bare[name], f"{what}: {run.result[name]}, alone {bare[name]}")
    clocks = clock_sources(run.trace)
    sources = [source for source, _ in clocks]
    aside = next((reason for source, reason in clocks[1:] if source != "CUPTI"), None)
    expect(aside is not None, f"the trace does not say that we stopped using CUPTI: {clocks}")
    expect(sources[-1] == "CUPTI" or "CUPTI" in sources[sources.index("CUPTI") + 1:],
           f"we did not use CUPTI again: {clocks}")
    return (f"{sum(sum(p['kernels']['names'].values()) for p in alone)} kernels each; further "
            f"sessions of {bare['sessions']} kernels each; on a wrong clock "
            f"{bare['too_early']} each; “{aside}”")


def gemms_of_known_shape(machine):
    """The floating-point operations of cuBLAS's GEMMs are counted right"""
    run = machine.work("train", mode=CUPTI)
    trace, wanted = run.trace, run.result["flops"]
    if not any(make.__name__ == "Gemm" for _, make in LAYOUTS.values()):
        raise NotHere("this build records no GEMMs")
    spins = {shape.shape for shape in trace.records["Shape"]
             if work_parts.MARKER in trace.strings[shape.kernel]}
    marks = [launch.time for launch in trace.records["Launch"] if launch.shape in spins]
    expect(len(marks) == 3, f"{len(marks)} markers launched, not 3")
    counted = sum(2 * gemm.batch * gemm.m * gemm.n * gemm.k for gemm in trace.records["Gemm"]
                  if marks[1] < gemm.time < marks[2])
    expect(counted == wanted, f"{counted} operations counted, {wanted} made")
    return f"{counted} operations in both"


def tensor_memory(machine):
    """The peaks of tensor memory are those that PyTorch reports"""
    run = machine.work("train", mode=CUPTI)
    records = [record for record in run.trace.records["Memory"] if record.tag & 0xff == 1]
    if not records:
        raise NotHere("this build records no totals of tensor memory")
    for name in ("peak_allocated", "peak_reserved"):
        seen = max(getattr(record, name) for record in records)
        expect(seen == run.result[name], f"{name}: {seen}, PyTorch says {run.result[name]}")
    return f"{run.result['peak_allocated']} B allocated, {run.result['peak_reserved']} B reserved"


def nvtx_ranges(machine):
    """Each range that the program marks with NVTX is in the trace once"""
    trace = machine.work("train", mode=CUPTI).trace
    ranges = trace.records["Range"] + trace.records["StepRange"]
    named = [span for span in ranges if trace.strings[span.name].startswith("gpu-check step")]
    expect(len(named) == STEPS, f"{len(named)} ranges, {STEPS} were marked")
    return f"{len(named)} ranges"


def graphs(machine):
    """A captured training step, replayed: the same kernels of each replay as torch.profiler"""
    result = machine.work("graph", "--profiler", mode=BARE).result
    run = machine.work("graph", mode=CUPTI)
    expect(run.result["losses"] == result["losses"], "losses differ")
    theirs = result["profiler"][0]["kernels"]["names"]
    ours = gpu_parts(run.trace)[0]["kernels"]["names"]
    expect(ours == theirs, "kernels differ: " + work_parts.difference(ours, theirs))
    expect(ours and all(count % STEPS == 0 for count in ours.values()), f"not {STEPS} times each")
    launched = len(run.trace.records["GraphLaunch"])
    expect(launched == result["replays"], f"{launched} replays, {result['replays']} were made")
    return f"{launched} replays of {sum(ours.values()) // STEPS} kernels"


def graphs_as_a_whole(machine):
    """TSCOPE_GPU_GRAPHS=whole: each replay has one record, and losses are the same"""
    result = machine.work("graph", "--profiler", mode=BARE).result
    run = machine.work("graph", mode=CUPTI, TSCOPE_GPU_GRAPHS="whole")
    expect(run.result["losses"] == result["losses"], "losses differ")
    spans = [span for span in run.trace.records["GpuKernel"]
             if run.trace.strings[span.name] == "CUDA graph"]
    expect(len(spans) == result["replays"], f"{len(spans)} replays, {result['replays']} were made")
    return f"{len(spans)} replays, {sum(span.dur for span in spans) * 1e-6:.3f} ms"


def duty_cycle(machine):
    """TSCOPE_GPU_STEPS=2/5: CUPTI is switched off and on, and the training stays the same"""
    run = machine.work("train", mode=CUPTI, TSCOPE_GPU_STEPS="2/5")
    expect(run.result["losses"] == machine.work("train").result["losses"], "losses differ")
    sources = [source for source, _ in clock_sources(run.trace)]
    rests = sources.count("HOST")
    expect(rests >= 2 and "CUPTI" in sources[sources.index("HOST"):], f"{clock_sources(run.trace)}")
    seen = len(run.trace.records["GpuKernel"])
    every = len(machine.work("train", mode=CUPTI).trace.records["GpuKernel"])
    expect(0 < seen < every, f"{seen} kernels seen of {every}")
    return f"{rests} rests; {seen} kernels seen of {every}"


def device_memory(machine):
    """The GPU memory that each mode uses in addition to the training"""
    bare = machine.work("train", mode=BARE).result["device_used"]
    texts = []
    for mode in modes(machine):
        used = machine.work("train", mode=mode).result["device_used"]
        texts.append(f"{mode} {(used - bare) / 2**20:+.1f} MiB")
    if not machine.real:
        raise NotHere("needs a GPU: the stand-ins take no memory for themselves")
    return f"without {bare / 2**20:.1f} MiB in use; " + ", ".join(texts)


def one_queue(machine):
    """CUDA_DEVICE_MAX_CONNECTIONS=1: tscope uses no timing events, and the trace says so"""
    run = machine.work("train", mode=AUTO, CUDA_DEVICE_MAX_CONNECTIONS="1")
    expect(run.result["losses"] == machine.work("train").result["losses"], "losses differ")
    clocks = clock_sources(run.trace)
    expect(clocks and all(source != "EVENTS" for source, _ in clocks), f"{clocks}")
    return f"{clocks[0][0]}: “{clocks[0][1]}”"


def collectives_seen(machine, ranks, mode, *arguments, **settings):
    """Runs train_nccl.py on one GPU; it checks the results of its integer collectives itself."""
    steps = 6
    if machine.real:
        arguments += ("--one-gpu", "--workers", "1")
    elif ranks == 2 and mode == CUPTI:
        settings["TSCOPE_NCCL_PROFILER"] = "times"  # so that all rows share one run on the stand-ins
    run = machine.run("../torch/jobs/train_nccl.py", "--steps", str(steps), *arguments, mode=mode,
                      ranks=ranks, limit=120, **settings)
    expect(len(run.traces) == ranks, f"{len(run.traces)} traces of {ranks} ranks")
    calls = runs = 0
    for trace in run.traces:
        expect(not any(trace.lost), f"rank {trace.rank} lost records: {trace.lost}")
        expect(all(call.dur != PENDING and call.result == 0
                   for call in trace.records["Collective"]), "calls that failed or did not return")
        calls += len(trace.records["Collective"])
        runs += len(trace.records["CollectiveRun"])
    if ranks > 1:
        quality = machine.report(run)["quality"]["coverage"]
        for name in ("matched collectives", "collective times"):
            expect(quality[name]["share"] == 1, f"{name}: {quality[name]}")
    return run, f"{calls} calls, {runs} runs on the GPU"


def nccl_one_rank(machine):
    """NCCL, one rank"""
    return collectives_seen(machine, 1, CUPTI)[1]


def nccl_ranks(machine):
    """NCCL, two ranks on one GPU: every collective is matched, and its time is known"""
    return collectives_seen(machine, 2, CUPTI)[1]


def nccl_four_ranks(machine):
    """The same with four ranks"""
    if not machine.real:
        raise NotHere("only two ranks are tried on the stand-ins")
    return collectives_seen(machine, 4, CUPTI)[1]


def nccl_event_pairs(machine):
    """The same with event pairs instead of CUPTI"""
    run, summary = collectives_seen(machine, 2, EVENTS)
    sources = {source for trace in run.traces for source, _ in clock_sources(trace)}
    expect(sources == {"EVENTS"}, f"{sources}")
    return summary


def nccl_profiler(machine):
    """NCCL reports each of its collectives to the profiler plugin, with algorithm and times"""
    run, _ = collectives_seen(machine, 2, CUPTI, TSCOPE_NCCL_PROFILER="times")
    reported = timed = called = 0
    for trace in run.traces:
        called += sum(call.tag in ONE_KERNEL for call in trace.records["Collective"])
        inside = [call for call in trace.records["CollectiveInside"] if call.tag in ONE_KERNEL]
        reported += len(inside)
        timed += sum(call.gpu_stop > call.gpu_start > 0 for call in inside)
    expect(reported == called, f"NCCL reported {reported} of {called} collectives")
    return f"{reported} collectives, {timed} with times of the GPU"


def report_reads(machine):
    """The report of a training run: the right number of steps, and the source of GPU times"""
    found = machine.report(collectives_seen(machine, 2, CUPTI)[0])
    expect(found["steps"]["count"] == 6, f"{found['steps']}")
    expect("CUPTI" in found["quality"]["gpu_timing"], f"{found['quality']['gpu_timing']}")
    return f"{len(found['findings'])} findings"


def launches_counted(machine):
    """A program in C: every launch, copy, fill and replay; kernels have the length measured by CUDA events"""
    # Kernels of the stand-ins have a set length. With 1 ms, the gaps between them are 0.1 %.
    settings = {} if machine.real else {"STANDIN_KERNEL_US": "1000"}
    run = machine.program("launches", "count", mode=CUPTI, **settings)
    trace, result = run.trace, run.result
    spans = trace.records["GpuKernel"]
    expect(spans, f"no kernels; sources of GPU times: {clock_sources(trace)}")
    for name in ("check_tiny", "check_graphed", "check_long"):
        seen = sum(trace.strings[span.name] == name for span in spans)
        expect(seen == result[name], f"{name}: {seen} seen, {result[name]} ran")
    for record, wanted in (("GpuMemcpy", 1), ("GpuMemset", 1), ("GraphLaunch", result["replays"])):
        seen = len(trace.records[record])
        expect(seen == wanted, f"{record}: {seen}, not {wanted}")
    longer = [span.dur for span in spans if trace.strings[span.name] == "check_long"]
    difference = sum(longer[1:]) * 1e-6 / result["long_ms"] - 1
    expect(abs(difference) <= WITHIN, f"the long kernels' time: {difference:+.2%} from the time of the events")
    return (f"{len(spans)} kernels, {result['replays']} replays; time {difference:+.3%}; "
            f"launches by the runtime too: {result['by_runtime']}")


def times_on_the_hosts_clock(machine):
    """Kernels begin after the host has launched them, and end before the host knows that they are done"""
    settings = {} if machine.real else {"STANDIN_KERNEL_US": "1000"}
    run = machine.program("launches", "count", mode=CUPTI, **settings)
    trace, result = run.trace, run.result
    longer = [span for span in trace.records["GpuKernel"]
              if trace.strings[span.name] == "check_long"]
    expect(longer, f"no kernels; sources of GPU times: {clock_sources(trace)}")
    first = min(span.time for span in longer) * 1e-3 - result["long_from"] * 1e6
    last = result["long_to"] * 1e6 - max(span.time + span.dur for span in longer) * 1e-3
    summary = f"the first began {first:.1f} µs after its launch, the last ended {last:.1f} µs before"
    expect(first > -CLOCK_ERROR_US and last > -CLOCK_ERROR_US, summary)
    expect(first < 1e5 and last < 1e5, summary)
    return summary
