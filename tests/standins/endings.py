#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs on the stand-in cluster that end early, each for a known cause. The report must name the cause
and the ranks.

    endings.py --build BUILD [--repeat N] [SCENARIO...]
    endings.py --list
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from built import built  # noqa: E402
from control_groups import ControlGroup  # noqa: E402
from findings import findings_of  # noqa: E402
from observed import json_of, observed_environment, run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from repeated import main  # noqa: E402
from standin_job import StandinJob  # noqa: E402
from summaries import report_on  # noqa: E402

FAULTS = {"sleep": 1, "die": 2, "stop": 3, "skip": 4, "exit": 6, "abort": 7, "crash": 8, "extra": 9, "error": 10, "memory": 11}
MEMORY_LIMIT = 1 << 30

# The fault of rank 1 in step 10, and the ranks (default: rank 1) and the cause that the report must name.
SCENARIOS = {
    "exit": {"fault": "exit", "cause": "exit status", "says": "exit status 3"},
    "kill": {"fault": "die", "cause": "signal", "says": "SIGKILL"},
    "crash": {"fault": "crash", "cause": "signal", "says": "SIGSEGV"},
    "abort": {"fault": "abort", "cause": "signal", "says": "SIGABRT"},
    "nccl-error": {"fault": "error", "cause": "NCCL error", "says": "NCCL error 4"},
    "out-of-memory": {"fault": "memory", "cause": "out of memory", "says": "memory was used up", "cgroup": True},
    "two-culprits": {"fault": "exit", "options": ["--fault-rank-too", "3"], "culprits": [1, 3],
                     "cause": "exit status", "says": "exit status 3"},
    "launchers-timeout": {"fault": "sleep", "timeout": True, "cause": "held up", "says": "rank 1"},
    # Killed at once, it may have no time to say that it did not run.
    "stopped": {"fault": "stop", "stopped_s": 7, "cause": "silent", "or": "stopped", "says": "rank 1"},
    "still-stopped": {"fault": "stop", "stopped_s": 5, "alive": True, "cause": "stopped", "says": "rank 1"},
    "one-call-left-out": {"fault": "skip", "options": ["--steps", "16"], "timeout": True,
                          "cause": "calls differ", "says": "left out all_reduce of 65536 bytes (call number 40"},
    "one-call-too-many": {"fault": "extra", "options": ["--steps", "16"], "timeout": True,
                          "cause": "calls differ", "says": "one too many, all_reduce of 65536 bytes (call number 41"},
    # Before and after its GPU times are delivered, which tie its clock.
    "host-lost": {"fault": "die", "alone": True, "cause": "host lost", "says": "fell silent"},
    "host-lost-at-once": {"fault": "die", "alone": True, "options": ["--fault-step", "3"], "cause": "host lost",
                          "says": "fell silent"},
    "host-lost-later": {"fault": "die", "alone": True, "options": ["--steps", "200", "--fault-step", "80"],
                        "cause": "host lost", "says": "fell silent"},
}


def environment(build, folder):
    return observed_environment(built(build, "libtscope.so"), os.path.join(folder, "traces"), TSCOPE_RUN="end")


def run_with_launcher(build, folder, command, scenario):
    """The training program starts its ranks, waits for them and ends those that are left. Returns how
    many processes the kernel killed because of the cgroup's memory limit."""
    prefix = ["timeout", "-s", "TERM", "8"] if scenario.get("timeout") else []
    group = ControlGroup("memory", MEMORY_LIMIT) if scenario.get("cgroup") else None
    try:
        subprocess.run([*prefix, *command], env=environment(build, folder), check=False, timeout=100,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=group and group.enter)
        return group.kernel_kills() if group else 0
    finally:
        if group:
            group.remove()


def signal_in_one_moment(group, *numbers):
    """In between, no process of the group may take this one's core: it would train on for a while."""
    usual = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass
    for number in numbers:
        os.killpg(group, number)
    os.sched_setscheduler(0, *usual)


def run_stopped(build, folder, command, scenario, look):
    """A rank stops itself. After some seconds a pipeline's time limit lets it go and in the same moment kills all. Looks at
    what there is after that, or before it."""
    with subprocess.Popen(command, env=environment(build, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as job:
        def states():
            return subprocess.run(["ps", "-o", "state=", "-g", str(job.pid)], capture_output=True, text=True).stdout

        def stopped():
            return "T" in states()
        try:
            while not stopped():
                assert job.poll() is None
            time.sleep(scenario["stopped_s"])
            seen = look() if scenario.get("alive") else None
        finally:
            signal_in_one_moment(job.pid, signal.SIGCONT, signal.SIGKILL)
    # Two looks are the same only when all are gone.
    wait_until("all are gone", lambda: not set(states().split()) - {"Z"}, each=0.02)
    return seen or look()


def run_ranks_alone(build, folder, command):
    """Each rank is on its own host, and no launcher sees how it ends."""
    preload = [built(build, name) for name in ("libskewclock.so", "libtscope.so")]
    job = StandinJob(build, folder, command=command, run="end", of_rank={rank: {"LOCAL_RANK": "0"} for rank in range(4)},
              LD_PRELOAD=" ".join(preload), SKEW_HOSTS="1")
    job.ranks[1].wait(timeout=60)
    try:
        job.ranks[0].wait(timeout=1)  # the user kills the job after a second
    except subprocess.TimeoutExpired:
        pass
    job.end()


def check(name, build, folder):
    scenario = SCENARIOS[name]
    command = [built(build, "train"), "--steps", "40", "--fault",
               str(FAULTS[scenario["fault"]]), *scenario.get("options", [])]
    reported = [built(build, "tscope-report"), os.path.join(folder, "traces")]

    def look():
        alive = scenario.get("alive")  # then no two reports are the same
        return (json_of if alive else report_on)(*reported), run(*reported).stdout

    if "stopped_s" in scenario:
        judge(scenario, *run_stopped(build, folder, command, scenario, look))
    elif scenario.get("alone"):
        run_ranks_alone(build, folder, command)
        judge(scenario, *look())
    else:
        kills = run_with_launcher(build, folder, command, scenario)
        judge(scenario, *look(), kills)


def check_hang(calls, document, text, wanted):
    """Whom the pending calls point to ended the run, or else nobody is told of a hang: by no verdict, no suspect, no
    finding, no section."""
    verdict, suspects = calls["verdict"] or "", [suspect["rank"] for suspect in calls["suspects"]]
    hang, desync = "hang" in verdict, "desync" in verdict
    assert (suspects or not hang) and (hang or desync or not suspects) and set(suspects) <= set(wanted), calls
    assert ("look at     first:" in text) == bool(suspects), text
    found = [finding["id"] for finding in document["findings"] if finding["id"].startswith("DIST.HANG")]
    critical = [section for section in document["sections"] if section["name"] == "hang" and
                section["mark"] == "critical"]
    assert bool(found) == hang and (hang or desync or not critical), (found, critical)


def judge(scenario, document, text, kills=0):
    """The report must name exactly the ranks that had the fault. If the kernel killed a second rank
    before the memory of the first was free, it must name both."""
    end, wanted = document["run_end"], scenario.get("culprits", [1])
    if kills > 1 and len(end["culprits"]) == kills and 1 in end["culprits"]:
        wanted = sorted(end["culprits"])
    assert (end["how"], sorted(end["culprits"])) == ("early", wanted), (end, text)
    assert end["cause"] in (scenario["cause"], scenario.get("or")), end
    findings = findings_of(document, "RUN.ENDED_EARLY")
    assert [sorted(finding["ranks"]) for finding in findings] == [wanted], findings
    assert document["findings"][0]["id"] == "RUN.ENDED_EARLY", document["findings"][0]
    printed = findings[0]["title"].replace("Rank", "rank") + findings[0]["evidence"]
    words = [scenario["says"], scenario.get("or_says", scenario["says"])]
    assert any(said in printed for said in words), (words, printed)
    for finding in document["findings"]:
        if finding["id"].startswith("DIST.HANG"):
            assert set(finding["ranks"]) <= set(wanted), finding
        assert not (finding["id"] == "DATA.PARTIAL" and "did not end normally" in finding["title"]), finding
    calls = document["collective_check"]
    check_hang(calls, document, text, wanted)
    assert "How the run ended" in text[:400], text[:400]


if __name__ == "__main__":
    main(SCENARIOS, check)
