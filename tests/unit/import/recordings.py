# SPDX-License-Identifier: MIT
"""Reports on every recording in ../shared/testdata: each report keeps the promises of tests/standins/promises.py, and
no what-if is shorter than the work of a stream according to the trace itself.

    recordings.py TSCOPE-REPORT SOURCE
"""
import json
import os
import pathlib
import sys
import tempfile

report_program, source = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path[:0] = [str(source / "tests" / "standins"), str(source / "tests" / "tools")]
from observed import run  # noqa: E402
from outcomes import Skip  # noqa: E402
from promises import broken  # noqa: E402
from shared_recordings import document_of, profiles, spans_of  # noqa: E402

testdata = source.parent / "shared" / "testdata"
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events"}


def made(path, form):
    return run(report_program, "--format", form, path).stdout


def busy_by_stream(events, begin, end):
    """Milliseconds of work other than collectives on each stream between two instants."""
    busy = {}
    for event in events:
        if str(event.get("cat", "")).lower() not in ON_DEVICE or "nccl" in event["name"].lower():
            continue
        start, stop = max(event["ts"], begin), min(event["ts"] + event["dur"], end)
        where = (event["pid"], event["tid"])
        busy[where] = busy.get(where, 0) + max(0, stop - start) / 1e3
    return busy


def least_step_ms(traces, report):
    """For each trace, the mean work of its busiest stream in one step, over the analysed steps."""
    most = {}
    for trace in traces:
        events = spans_of(document_of(trace))
        steps = sorted({(event["ts"], event["ts"] + event["dur"]) for event in events
                        if event["name"].startswith("ProfilerStep#")
                        and "gpu" not in str(event.get("cat", ""))})
        left_out = int(report["steps"]["warmup_excluded"] or 0)
        if not steps and report["steps"]["count"]:  # found in another way: all work, over all steps
            begin, end, n = float("-inf"), float("inf"), report["steps"]["count"]
        elif looked_at := steps[left_out:]:
            # work launched in the last step may run after it, and work launched before the first may run in it
            begin, end, n = looked_at[0][0], looked_at[-1][1], len(looked_at)
        else:
            begin, end, n = float("-inf"), float("inf"), 1
        busy = busy_by_stream(events, begin, end)
        most[trace] = max(busy.values(), default=0) / n
    return most


def check_what_ifs(traces, report):
    most = least_step_ms(traces, report)
    for what_if in report["critical_path"]["what_if"]:
        wanted = sorted(most.values())
        if what_if["change"].startswith("rank "):
            wanted = wanted[:-1]  # the what-if changes the work of this rank
        elif what_if["change"].startswith("every rank"):
            wanted = wanted[:1]
        wanted = wanted[-1] if wanted else 0
        if what_if["step_ms"] < wanted * (1 - 1e-6):
            yield (f"{what_if['change']}: {what_if['step_ms']} ms, of which a stream works "
                   f"{wanted} ms")


def what_if(report, change):
    return {one["change"]: one for one in report["critical_path"]["what_if"]}[change]


def resnet_30steps(report):
    """Its DataLoader takes 272 ms of a 379 ms step, the GPU is busy for 160 ms; the first steps are fast."""
    saved = what_if(report, "input always ready")["saving_fraction"]
    if not 0.48 < saved < 0.58:
        yield f"input always ready saves {saved}"
    if report["steps"]["warmup_excluded"] > 1:
        yield f"{report['steps']['warmup_excluded']} steps are taken for warm-up"
    if report["findings"][0]["id"] != "TIMING.DATALOADER_BOUND":
        yield f"{report['findings'][0]['id']} comes first, not the input"


def not_near(what, value, wanted, tolerance=0.01):
    if value is None or abs(value - wanted) > tolerance * wanted:
        yield f"{what} is {value}, truly {wanted}"


def budget_ms(report, name):
    return next(line["seconds"] for line in report["budget"]["lines"] if line["name"] == name) * 1e3


def launched_before_the_recording(report):
    """Its first GPU work begins 56 and 149 ms after the first recorded launch: what the GPU did before is not known."""
    if "launched before the recording began" not in report["quality"]["gpu_timing"]:
        yield f"GPU time: {report['quality']['gpu_timing']}"
    lines = [line for line in report["lines"]["lines"] if line["idle_ms"]]
    idle = budget_ms(report, "launch and idle")
    if lines or idle > 0.05 * report["budget"]["wall_s"] * 1e3:
        yield f"idle: {idle} ms; {lines}"
    if any(finding["id"] in ("HOST.SYNC", "EFFICIENCY.RECOVERABLE") for finding in report["findings"]):
        yield f"findings: {[finding['title'] for finding in report['findings']]}"


def mi300_resnet_checkpoint(report):
    """Each step launches 2.96 to 3.03 ms of GPU work directly from resnet.py:89, two steps ahead of the GPU."""
    yield from not_near("the GPU's span", report["gpu_timeline"]["total_ms"], 86.57, 0.001)
    line = next((line for line in report["lines"]["lines"] if line["place"].endswith("models/resnet.py:89")), None)
    if not line:
        yield "resnet.py:89 is not among the lines"
    else:
        yield from not_near("work launched at resnet.py:89", line["gpu_ms"] - line["backward_gpu_ms"], 2.995, 0.013)


def mtia(report):
    """Not a GPU, but a device all the same: 7.70 s of 13.3 s with work."""
    yield from not_near("work of the device", budget_ms(report, "compute") + budget_ms(report, "memory copies"), 7700)
    yield from not_near("its copies", sum(kind["count"] for kind in report["kernels"]["by_category"]
                                          if kind["category"] == "memcpy"), 22179 + 137 + 45)


# By folder: ../shared/testdata/README.md. More of its truths are in kineto_communication.c, kineto_recordings.c,
# memory_snapshot.py and recorder_verdict.py.
TRUTHS = {"resnet_30steps": resnet_30steps, "mi300_resnet_checkpoint": mi300_resnet_checkpoint, "mtia": mtia,
          "mi300_vllm_piecewise": launched_before_the_recording, "mi300_vllm_decode": launched_before_the_recording}


def kineto(folder):
    """(what to give the report, its traces)"""
    for paths in profiles(testdata, folder).values():
        yield os.path.commonpath(paths), paths
        yield from ((path, [path]) for path in paths if len(paths) > 1)


def others():
    for folder in sorted((testdata / "flight_recorder").iterdir()):
        yield str(folder)
    for snapshot in sorted((testdata / "memory_snapshot").iterdir()):
        yield str(snapshot)


def main():
    if not testdata.exists():
        raise Skip("there is no ../shared/testdata beside the source")
    wrong, recordings = [], 0
    with tempfile.TemporaryDirectory(prefix="tscope-recordings-") as folder:
        for path, traces in [*kineto(folder), *((other, []) for other in others())]:
            document = made(path, "json")
            found = broken(document, made(path, "text"))
            if traces:
                found += check_what_ifs(traces, json.loads(document))
                found += TRUTHS.get(pathlib.Path(path).parent.name, lambda report: [])(json.loads(document))
            wrong += [f"{path.replace(str(source.parent), '..')}: {one}" for one in found]
            recordings += 1
    print(f"{recordings} recordings")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
