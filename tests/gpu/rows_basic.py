# SPDX-License-Identifier: MIT
"""Rows of scripts/gpu-check about a program in C, a training step and collectives: one function a row.
A row returns what it measured as text, raises Failed when it does not hold, and NotHere when this
machine cannot tell."""
import statistics

import work_parts
from judging import clock_sources, expect, gpu_parts, modes
from machine import AUTO, BARE, CUPTI, EVENTS, OFF, NotHere
from read_trace import ENUMS, LAYOUTS, PENDING

STEPS = 10
WITHIN = 0.01  # of the time that torch.profiler says
CLOCK_ERROR_US = 20  # the GPU's clock is told on the host's with an error
# The collectives that NCCL does not make of sends and receives.
ONE_KERNEL = {ENUMS["OPS"][name] for name in ("ALLREDUCE", "BROADCAST", "REDUCE", "ALLGATHER",
                                              "REDUCE_SCATTER")}


def losses_are_the_same(machine):
    """Losses bit for bit as without the shim, in every mode, with deterministic algorithms"""
    bare = machine.work("train", mode=BARE).said
    for mode in modes(machine):
        said = machine.work("train", mode=mode).said
        expect(said["losses"] == bare["losses"], f"{mode}: losses {said['losses']}, without the "
               f"shim {bare['losses']}")
        expect(said["peak_allocated"] == bare["peak_allocated"], f"{mode}: tensor memory differs")
    return f"{len(bare['losses'])} losses in each of {len(modes(machine))} modes; the last is {bare['losses'][-1]}"


def says_nothing(machine):
    """Nothing of ours on the job's standard error, and its standard output as it was"""
    for mode in modes(machine):
        run = machine.work("train", mode=mode)
        ours = [line for line in run.errors.splitlines() if line.startswith("tscope")]
        expect(not ours, f"{mode}: {ours}")
        expect(len(run.lines) == 1, f"{mode}: {run.lines}")
        expect(bool(run.traces) == (mode != OFF), f"{mode}: {len(run.traces)} traces")
    return ", ".join(modes(machine))


def torch_profiler_alone(machine, name=""):
    said = machine.work("train", "--profiler", mode=BARE, name=name).said["profiler"]
    if not said:
        raise NotHere("torch.profiler sees no kernels on this machine")
    return said


def training_time(parts):
    return parts[0]["kernels"]["seconds"]


def kernels_as_torch_profiler(machine):
    """The same kernels as torch.profiler sees, as often; their time within 1 %, median of pairs"""
    said = torch_profiler_alone(machine)
    seen = gpu_parts(machine.work("train", mode=CUPTI).trace)
    expect(len(said) == len(seen) == 2, f"{len(said)} and {len(seen)} parts")
    total, apart = 0, []
    for theirs, ours in zip(said, seen):
        theirs, ours = theirs["kernels"], ours["kernels"]
        expect(ours["names"] == theirs["names"],
               "kernels differ: " + work_parts.difference(ours["names"], theirs["names"]))
        total += sum(ours["names"].values())
        apart.append(ours["seconds"] / theirs["seconds"] - 1)
    pairs = [apart[0]]
    for n in range(2 if machine.real else 0):  # the GPU's own clocks differ from run to run
        alone = training_time(torch_profiler_alone(machine, f"pair {n}"))
        ours = gpu_parts(machine.work("train", mode=CUPTI, name=f"pair {n}").trace)
        pairs.append(training_time(ours) / alone - 1)
    middle = statistics.median(pairs)
    told = ", ".join(f"{pair:+.3%}" for pair in pairs)
    expect(abs(middle) <= WITHIN, f"time of the training's kernels, run by run: {told}")
    return f"{total} kernels; time in training {middle:+.3%} ({told}), in GEMMs {apart[1]:+.3%}"


def every_launch_once(machine):
    """Each kernel that ran was launched by one call in the trace, whichever API it came by"""
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
    said = torch_profiler_alone(machine)
    seen = gpu_parts(machine.work("train", mode=CUPTI).trace)
    numbers = []
    for kind in ("copies", "fills"):
        theirs, ours = (sum(sum(part.get(kind, {"names": {}})["names"].values()) for part in parts)
                        for parts in (said, seen))
        expect(ours == theirs, f"{ours} {kind}, torch.profiler saw {theirs}")
        numbers.append(f"{ours} {kind}")
    return ", ".join(numbers)


def beside_torch_profiler(machine):
    """torch.profiler beside us sees what it sees alone; we step aside, say so, and come back"""
    alone = torch_profiler_alone(machine)
    run = machine.work("train", "--profiler", mode=AUTO)
    beside = run.said["profiler"]
    for one, other in zip(alone, beside):
        for kind in one:
            expect(other.get(kind, {}).get("names") == one[kind]["names"], f"{kind} differ: "
                   + work_parts.difference(other.get(kind, {}).get("names", {}), one[kind]["names"]))
    expect(run.said["losses"] == machine.work("train").said["losses"], "losses differ")
    bare = machine.work("train", "--profiler", mode=BARE).said
    for what, name in (("kernels in its further sessions", "sessions"),
                       ("kernels told on a wrong clock", "too_early")):
        expect(run.said[name] == bare[name], f"{what}: {run.said[name]}, alone {bare[name]}")
    told = clock_sources(run.trace)
    sources = [source for source, _ in told]
    aside = next((reason for source, reason in told[1:] if source != "CUPTI"), None)
    expect(aside is not None, f"we do not say that we stepped aside: {told}")
    expect(sources[-1] == "CUPTI" or "CUPTI" in sources[sources.index("CUPTI") + 1:],
           f"we did not come back: {told}")
    return (f"{sum(sum(p['kernels']['names'].values()) for p in alone)} kernels each; further "
            f"sessions of {bare['sessions']} kernels each; told on a wrong clock "
            f"{bare['too_early']} each; “{aside}”")


def gemms_of_known_shape(machine):
    """The floating-point operations of cuBLAS's GEMMs are counted right"""
    run = machine.work("train", mode=CUPTI)
    trace, wanted = run.trace, run.said["flops"]
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
        expect(seen == run.said[name], f"{name}: {seen}, PyTorch says {run.said[name]}")
    return f"{run.said['peak_allocated']} B allocated, {run.said['peak_reserved']} B reserved"


def nvtx_ranges(machine):
    """Ranges that the program marks through NVTX are there, each once"""
    trace = machine.work("train", mode=CUPTI).trace
    ranges = trace.records["Range"] + trace.records["StepRange"]
    named = [span for span in ranges if trace.strings[span.name].startswith("gpu-check step")]
    expect(len(named) == STEPS, f"{len(named)} ranges, {STEPS} were marked")
    return f"{len(named)} ranges"


def graphs(machine):
    """A captured training step, replayed: each kernel of each replay, as torch.profiler sees it"""
    said = machine.work("graph", "--profiler", mode=BARE).said
    run = machine.work("graph", mode=CUPTI)
    expect(run.said["losses"] == said["losses"], "losses differ")
    theirs = said["profiler"][0]["kernels"]["names"]
    ours = gpu_parts(run.trace)[0]["kernels"]["names"]
    expect(ours == theirs, "kernels differ: " + work_parts.difference(ours, theirs))
    expect(ours and all(count % STEPS == 0 for count in ours.values()), f"not {STEPS} times each")
    launched = len(run.trace.records["GraphLaunch"])
    expect(launched == said["replays"], f"{launched} replays, {said['replays']} were made")
    return f"{launched} replays of {sum(ours.values()) // STEPS} kernels"


def graphs_as_a_whole(machine):
    """TSCOPE_GPU_GRAPHS=whole: each replay is one piece of work, and losses are the same"""
    said = machine.work("graph", "--profiler", mode=BARE).said
    run = machine.work("graph", mode=CUPTI, TSCOPE_GPU_GRAPHS="whole")
    expect(run.said["losses"] == said["losses"], "losses differ")
    spans = [span for span in run.trace.records["GpuKernel"]
             if run.trace.strings[span.name] == "CUDA graph"]
    expect(len(spans) == said["replays"], f"{len(spans)} replays, {said['replays']} were made")
    return f"{len(spans)} replays, {sum(span.dur for span in spans) * 1e-6:.3f} ms"


def duty_cycle(machine):
    """TSCOPE_GPU_STEPS=2/5: CUPTI is switched off and on beside a training that stays the same"""
    run = machine.work("train", mode=CUPTI, TSCOPE_GPU_STEPS="2/5")
    expect(run.said["losses"] == machine.work("train").said["losses"], "losses differ")
    told = [source for source, _ in clock_sources(run.trace)]
    rests = told.count("HOST")
    expect(rests >= 2 and "CUPTI" in told[told.index("HOST"):], f"{clock_sources(run.trace)}")
    seen = len(run.trace.records["GpuKernel"])
    every = len(machine.work("train", mode=CUPTI).trace.records["GpuKernel"])
    expect(0 < seen < every, f"{seen} kernels seen of {every}")
    return f"{rests} rests; {seen} kernels seen of {every}"


def device_memory(machine):
    """What each mode takes of the GPU's memory beside what the training does"""
    bare = machine.work("train", mode=BARE).said["device_used"]
    told = []
    for mode in modes(machine):
        used = machine.work("train", mode=mode).said["device_used"]
        told.append(f"{mode} {(used - bare) / 2**20:+.1f} MiB")
    if not machine.real:
        raise NotHere("needs a GPU: the stand-ins take no memory for themselves")
    return f"without {bare / 2**20:.1f} MiB in use; " + ", ".join(told)


def one_queue(machine):
    """CUDA_DEVICE_MAX_CONNECTIONS=1: no timing event enters the program, and the trace says so"""
    run = machine.work("train", mode=AUTO, CUDA_DEVICE_MAX_CONNECTIONS="1")
    expect(run.said["losses"] == machine.work("train").said["losses"], "losses differ")
    told = clock_sources(run.trace)
    expect(told and all(source != "EVENTS" for source, _ in told), f"{told}")
    return f"{told[0][0]}: “{told[0][1]}”"


def collectives_seen(machine, ranks, mode, *arguments, **settings):
    """Runs train_nccl.py, whose integer collectives check themselves, on one GPU."""
    steps = 6
    if machine.real:
        arguments += ("--one-gpu", "--workers", "1")
    elif ranks == 2 and mode == CUPTI:
        settings["TSCOPE_NCCL_INSIDE"] = "times"  # so that the rehearsal has one run for all rows
    run = machine.run("../torch/jobs/train_nccl.py", "--steps", str(steps), *arguments, mode=mode,
                      ranks=ranks, limit=120, **settings)
    expect(len(run.traces) == ranks, f"{len(run.traces)} traces of {ranks} ranks")
    calls = runs = 0
    for trace in run.traces:
        expect(not any(trace.lost), f"rank {trace.rank} lost records: {trace.lost}")
        expect(all(call.dur != PENDING and call.result == 0
                   for call in trace.records["Collective"]), "calls that did not return well")
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
    """NCCL, two ranks on one GPU: every collective matched, and its time known"""
    return collectives_seen(machine, 2, CUPTI)[1]


def nccl_four_ranks(machine):
    """The same with four ranks"""
    if not machine.real:
        raise NotHere("two ranks are rehearsed")
    return collectives_seen(machine, 4, CUPTI)[1]


def nccl_event_pairs(machine):
    """The same with event pairs instead of CUPTI"""
    run, told = collectives_seen(machine, 2, EVENTS)
    sources = {source for trace in run.traces for source, _ in clock_sources(trace)}
    expect(sources == {"EVENTS"}, f"{sources}")
    return told


def nccl_inside(machine):
    """What NCCL tells of its own collectives, through its profiler plugin: algorithm and times"""
    run, _ = collectives_seen(machine, 2, CUPTI, TSCOPE_NCCL_INSIDE="times")
    told = timed = called = 0
    for trace in run.traces:
        called += sum(call.tag in ONE_KERNEL for call in trace.records["Collective"])
        inside = [call for call in trace.records["CollectiveInside"] if call.tag in ONE_KERNEL]
        told += len(inside)
        timed += sum(call.gpu_stop > call.gpu_start > 0 for call in inside)
    expect(told == called, f"NCCL told of {told} of {called} collectives")
    return f"{told} collectives, {timed} with times of the GPU"


def report_reads(machine):
    """The report on a training run: steps counted right, GPU time's origin told"""
    found = machine.report(collectives_seen(machine, 2, CUPTI)[0])
    expect(found["steps"]["count"] == 6, f"{found['steps']}")
    expect("CUPTI" in found["quality"]["gpu_timing"], f"{found['quality']['gpu_timing']}")
    return f"{len(found['findings'])} findings"


def launches_counted(machine):
    """A program in C: every launch, copy, fill and replay; kernels as long as CUDA events say"""
    # Kernels of the stand-ins are as long as one says; of 1 ms, the gaps between them are 0.1 %.
    settings = {} if machine.real else {"STANDIN_KERNEL_US": "1000"}
    run = machine.program("launches", "count", mode=CUPTI, **settings)
    trace, said = run.trace, run.said
    spans = trace.records["GpuKernel"]
    expect(spans, f"no kernels; GPU time was had so: {clock_sources(trace)}")
    for name in ("check_tiny", "check_graphed", "check_long"):
        seen = sum(trace.strings[span.name] == name for span in spans)
        expect(seen == said[name], f"{name}: {seen} seen, {said[name]} ran")
    for record, wanted in (("GpuMemcpy", 1), ("GpuMemset", 1), ("GraphLaunch", said["replays"])):
        seen = len(trace.records[record])
        expect(seen == wanted, f"{record}: {seen}, not {wanted}")
    longer = [span.dur for span in spans if trace.strings[span.name] == "check_long"]
    apart = sum(longer[1:]) * 1e-6 / said["long_ms"] - 1
    expect(abs(apart) <= WITHIN, f"the long kernels' time: {apart:+.2%} of what events say")
    return (f"{len(spans)} kernels, {said['replays']} replays; time {apart:+.3%}; "
            f"launches by the runtime too: {said['by_runtime']}")


def times_on_the_hosts_clock(machine):
    """Kernels begin after the host launched them, and end before it saw them done"""
    settings = {} if machine.real else {"STANDIN_KERNEL_US": "1000"}
    run = machine.program("launches", "count", mode=CUPTI, **settings)
    trace, said = run.trace, run.said
    longer = [span for span in trace.records["GpuKernel"]
              if trace.strings[span.name] == "check_long"]
    expect(longer, f"no kernels; GPU time was had so: {clock_sources(trace)}")
    first = min(span.time for span in longer) * 1e-3 - said["long_from"] * 1e6
    last = said["long_to"] * 1e6 - max(span.time + span.dur for span in longer) * 1e-3
    told = f"the first began {first:.1f} µs after its launch, the last ended {last:.1f} µs before"
    expect(first > -CLOCK_ERROR_US and last > -CLOCK_ERROR_US, told)
    expect(first < 1e5 and last < 1e5, told)
    return told
