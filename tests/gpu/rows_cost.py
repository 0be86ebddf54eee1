# SPDX-License-Identifier: MIT
"""Rows of scripts/gpu-check about the overhead of tscope."""
import concurrent.futures
import statistics
import tempfile
import time

from machine import BARE, CUPTI, EVENTS, HOST, OFF, Failed, NotHere, OutOfTime

WANTED = {OFF: 1.0, HOST: 1.003, EVENTS: 1.003, CUPTI: 1.01}  # largest wanted ratio of a training step's time
ROUNDS = 9
LEAST = 5  # fewer rounds are not enough
MIB_OF_ONE = 13 << 10  # GPU memory that a process of a round uses at most

def launch_overhead(machine):
    """The overhead of each mode in a program in C that only launches kernels: median of paired runs"""
    if not machine.real:
        machine.program("launches", "pace", mode=CUPTI)  # only tried, not measured
        raise NotHere("needs a GPU: the stand-ins do no work whose time could be measured")
    rounds = [{mode: machine.program("launches", "pace", mode=mode, label=f"round {n}")
               .result["launch_us"] for mode in (BARE, OFF, HOST, EVENTS, CUPTI)} for n in range(7)]
    texts = [f"7 rounds; without: {statistics.median(r[BARE] for r in rounds):.3f} µs a launch"]
    for mode in (OFF, HOST, EVENTS, CUPTI):
        ratios = sorted(r[mode] / r[BARE] for r in rounds)
        texts.append(f"{mode}: ×{ratios[3]:.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f})")
    return "; ".join(texts)


OURS = "10,1,22,2,17"  # the kinds of activities that tscope records (cupti_source.c)
OTHERS = {"10": "kernels alone", "10,17": "kernels and CUPTI's own overhead", "10,1,2": "kernels, copies and fills",
          "10,22": "kernels and copies between devices", "38": "waits", "36": "event records"}


def cost_of_kinds(machine):
    """What kinds of CUPTI's activities add to calls of CUDA, also after they are disabled; ours add to launches alone"""
    if not machine.real:
        machine.program("launches", "cost", OURS)  # only tried, not measured
        raise NotHere("needs a GPU: the stand-ins do no work whose time could be measured")
    texts = []
    for kinds, name in ((OURS, "ours"), *OTHERS.items()):
        runs = [machine.program("launches", "cost", kinds, label=f"round {n}").result for n in range(5)]
        added = {when: [statistics.median(run[when][call] - run["before"][call] for run in runs) for call in range(3)]
                 for when in ("enabled", "disabled")}
        texts.append(f"{name}: " + "; ".join(
            f"{when} launch {us[0]:+.2f}, cudaGetDevice {us[1]:+.3f}, cudaEventRecord {us[2]:+.3f} µs"
            for when, us in added.items()))
        if kinds == OURS and added["enabled"][1] > 0.1:
            raise Failed("a call that only asks takes longer: " + texts[0])
    return "; ".join(texts)


class Rounds:
    """Rounds of paired runs of a training step and of a loop of launches, in each mode."""

    def __init__(self, machine, modes=(BARE, OFF, HOST, EVENTS, CUPTI, "torch.profiler")):
        self.machine, self.modes = machine, list(modes)
        self.steps = "20" if machine.real else "2"
        self.done = []

    def run(self, mode, number, **settings):
        profiler = ("--profiler",) if mode == "torch.profiler" else ()
        return self.machine.work("pace", "--steps", self.steps, *profiler, mode=BARE if profiler else mode,
                                 name=f"round {number}", **settings).result

    def together(self):
        """Whether the processes of a round fit onto the GPU at the same time."""
        return not self.machine.real or self.machine.gpu_mib >= len(self.modes) * MIB_OF_ONE

    def add(self):
        """Runs one round: all modes start together and measure one after the other (work.py), or, where they do not
        fit, start one after the other, with another mode first than in the last round. Returns its seconds."""
        began, number = time.monotonic(), len(self.done)
        first = number % len(self.modes)
        order = self.modes[first:] + self.modes[:first]
        if self.together():
            settings = {"GPU_CHECK_TURNS": tempfile.mkdtemp(prefix="turns-", dir=self.machine.scratch),
                        "GPU_CHECK_PROCESSES": str(len(order))}
            with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
                results = list(pool.map(lambda mode: self.run(mode, number, **settings), order))
        else:
            results = [self.run(mode, number) for mode in order]
        self.done.append(dict(zip(order, results)))
        return time.monotonic() - began

    def described(self):
        bare = [done_round[BARE] for done_round in self.done]
        few = "" if len(self.done) >= LEAST else f", FEWER THAN {LEAST}"
        texts = [f"{len(self.done)} rounds{few}; without: step "
                 f"{statistics.median(r['step_ms'] for r in bare):.3f} ms, launch "
                 f"{statistics.median(r['launch_us'] for r in bare):.3f} µs"]
        for mode in self.modes[1:]:
            for what, name in (("step_ms", "step"), ("launch_us", "launch")):
                texts.append(self.ratio(mode, what, name))
        return "; ".join(texts)

    def ratio(self, mode, what, name):
        ratios = sorted(r[mode][what] / r[BARE][what] for r in self.done)
        middle = statistics.median(ratios)
        wanted = ""
        if name == "step" and mode in WANTED:
            wanted = f" (wanted at most ×{WANTED[mode]:.3f}" + (
                ")" if middle <= WANTED[mode] else ": MISSED)")
        return f"{mode}, {name}: ×{middle:.4f} ({ratios[0]:.4f} to {ratios[-1]:.4f}){wanted}"


def overhead(machine):
    """The overhead of each mode and of torch.profiler: median of the ratios of paired runs"""
    if not machine.real:
        rehearsal = Rounds(machine, (BARE, HOST, "torch.profiler"))  # only tried, not measured
        rehearsal.add()
        machine.so_far(rehearsal.described())
        raise NotHere("needs a GPU: the stand-ins do no work whose time could be measured")
    rounds, longest = Rounds(machine), 0.0
    while len(rounds.done) < ROUNDS and machine.left() > 1.1 * longest:
        try:
            longest = max(longest, rounds.add())
        except OutOfTime:
            break
        machine.so_far(rounds.described())
    if len(rounds.done) < LEAST:
        raise OutOfTime(f"time for only {len(rounds.done)} rounds; "
                        + (rounds.described() if rounds.done else "run only this row"))
    return rounds.described()
