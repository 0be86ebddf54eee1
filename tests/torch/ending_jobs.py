#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch jobs over gloo, started by torchrun, that end early, each for a known reason: which rank the report names.

    ending_jobs.py --build BUILD [--repeat N] [SCENARIO...]
    ending_jobs.py --list
"""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "standins"))
from endings import environment, judge  # noqa: E402
from built import built  # noqa: E402
from marks import place_of  # noqa: E402
from observed import run  # noqa: E402
from outcomes import wait_until  # noqa: E402
from repeated import main  # noqa: E402
from summaries import report_on  # noqa: E402
from torch_python import python_or_skip  # noqa: E402

# what happens to rank 1 or others in step 25 of 40, which rank the report must name, and with which words
SCENARIOS = {
    "exception": {"cause": "exception", "says": "ValueError: sample 1234 has no label", "line": "the exception",
                  "function": "end"},
    # raised in a library while another exception was handled
    "in-a-library": {"cause": "exception", "says": "RuntimeError: shape '[3]' is invalid", "line": "the library's",
                     "function": "end"},
    "chained": {"cause": "exception", "says": "; caused by json.decoder.JSONDecodeError: Expecting property name",
                "line": "the last", "function": "end"},
    "exit-text": {"cause": "exit status", "says": "exit status 1, after it wrote to standard error: no labels were found"},
    "in-a-worker": {"cause": "exception", "says": "ValueError: sample 0 has no label (in DataLoader worker process 0)",
                    "line": "the worker's", "function": "__getitem__"},
    "exit": {"cause": "exit status", "says": "exit status 3"},
    "exit-at-once": {"cause": "exit status", "says": "_exit status 4", "line": "the exit", "function": "end"},
    "exit-in-a-thread": {"cause": "exit status", "says": "_exit status 5", "line": "the thread's exit", "function": "give_up"},
    "kill": {"cause": "signal", "says": "SIGKILL"},
    "crash": {"cause": "signal", "says": "SIGSEGV"},
    "abort": {"cause": "signal", "says": "SIGABRT"},
    # as rich writes it, and Python a group of exceptions
    "boxed": {"cause": "exception", "says": "ValueError: sample 1234 has no label", "line": "the exception",
              "function": "end"},
    "group": {"cause": "exception", "says": "ExceptionGroup: samples (1 sub-exception)", "line": "the group",
              "function": "end"},
    "memory": {"cause": "out of memory", "says": "can't allocate memory", "line": "the memory", "function": "end"},
    # the program goes on to wait for the thread, and its peers for it, until their calls time out
    "in-a-thread": {"cause": "exception", "says": "ValueError: sample 1234 has no label", "line": "the thread's",
                    "function": "load"},
    # all ranks raise it at once, and a thread of theirs goes on
    "all-in-a-thread": {"ending": "in-a-thread", "culprits": [0, 1, 2, 3], "patience_s": 10, "cause": "exception",
                        "says": "ValueError: sample 1234 has no label", "line": "the thread's", "function": "load"},
    "late": {"cause": "held up", "says": "rank 1"},
    # torchrun looks 20 s later, when the others have ended: if it stops them within 0.4 s, nothing tells who was first
    "stopped": {"cause": "stopped", "says": "SIGTERM", "looks_s": 20},
    "two-culprits": {"ending": "exception", "culprits": [1, 3], "cause": "exception", "says": "ValueError"},
    "launchers-timeout": {"ending": "sleep", "patience_s": 5, "cause": "held up", "says": "rank 1"},
    # Ctrl-C: a terminal sends it to all; with and without a rank for which the others wait
    "interrupted": {"ending": "sleep", "patience_s": 5, "interrupts": True, "cause": "held up",
                    "says": "interrupted (SIGINT)", "line": "the sleep", "function": "end"},
    "interrupted-at-work": {"ending": "mark", "patience_s": 1, "interrupts": True, "steps": 100000, "culprits": []},
    # What it left out shows in the call behind, if it came to that before its peers' error ended it.
    "left-out": {"cause": "calls differ", "says": "left out all_reduce of 4 bytes",
                 "or_says": "called all_reduce of 2112 bytes where its peers called all_reduce of 4"},
    "left-out-of-calls-alike": {"cause": "calls differ", "says": "left out all_reduce of 4 bytes (call number 25,"},
    "too-many": {"cause": "calls differ", "says": "one too many, all_reduce of 4 bytes"},
    "other-words": {"cause": "exception", "says": "ValueError: sample 1234 has no label"},
    "kill-in-a-line": {"cause": "signal", "says": "(spin)"},
    "crash-in-a-line": {"cause": "signal", "says": "(spin)"},
    "early": {"cause": "left early", "says": "ended normally"},
    # torchrun starts all ranks again, and these train to the end
    "kill-and-restart": {"ending": "kill", "restarts": 1},
}


def end(job, mark, patience_s, interrupts):
    """Waits for the job, and returns what it said. If it stalls for `patience_s`, ends it like a launcher does, or
    like a user at a terminal."""
    try:
        if patience_s:
            wait_until("the step in which it stalls", lambda: os.path.exists(mark))
            time.sleep(patience_s)
            if interrupts:
                os.killpg(job.pid, signal.SIGINT)
            else:
                job.terminate()
        return job.communicate(timeout=280)[1]
    finally:
        job.kill()


def check(name, build, folder):
    scenario = SCENARIOS[name]
    ranks = ",".join(str(rank) for rank in scenario.get("culprits", [1]))
    mark = os.path.join(folder, "stands-still")
    env = {**environment(build, folder), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "STANDS_STILL": mark}
    if "restarts" in scenario:
        env.pop("TSCOPE_RUN")  # the name is tscope's own, as in most jobs
    with subprocess.Popen([python_or_skip(), "-m", "torch.distributed.run", "--nproc-per-node", "4", "--standalone",
                           "--max-restarts", str(scenario.get("restarts", 0)),
                           "--monitor-interval", str(scenario.get("looks_s", 0.1)),
                           os.path.join(HERE, "jobs", "ending_rank.py"),
                           scenario.get("ending", name), ranks or "1", "25", str(scenario.get("steps", 40))],
                          env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as job:
        said = end(job, mark, scenario.get("patience_s"), scenario.get("interrupts"))
    reported = [built(build, "tscope-report"), os.path.join(folder, "traces")]
    text = run(*reported).stdout
    document = report_on(*reported)
    if "restarts" in scenario:
        return judge_attempts(document, text, reported, said)
    if not ranks:
        assert document["run_end"]["culprits"] == [] and "interrupted (SIGINT)" in text, (document["run_end"], text)
        return document
    judge(scenario, document, text)
    if "line" in scenario:
        judge_place(scenario, document, text)
    return document


def judge_attempts(document, text, reported, said):
    """The report is of the last attempt, which went well, and says how the first one ended and who ended it."""
    attempts = document["run"]["attempts"]
    assert [one["ranks"] for one in attempts] == [4, 4] and document["run"]["attempt"] == 2, document["run"]
    assert "Rank 1 ended first" in attempts[0]["summary"] and "SIGKILL" in attempts[0]["summary"], attempts
    assert document["run_end"]["how"] == "in order", (document["run_end"], said)
    assert "this is the last, 2 of 2" in text and "SIGKILL" in text, text
    listed = run(reported[0], "--list", reported[1]).stdout
    assert "2 attempts" in listed and len(listed.splitlines()) == 1, listed
    return document


def judge_place(scenario, document, text):
    """The exception's line in the job's own code stands at the top."""
    place = f"{place_of(os.path.join(HERE, 'jobs', 'ending_rank.py'), scenario['line'])} ({scenario['function']})"
    culprit = document["run_end"]["culprits"][0]
    found = next(rank["exception_at"] or rank["last_seen"] for rank in document["run_end"]["ranks"] if rank["rank"] == culprit)
    assert found.endswith(place), (found, place)
    assert place in document["run_end"]["summary"], document["run_end"]["summary"]
    assert place in "".join(text.split("What this rests on")[0].split("\n")).replace("  ", ""), text


if __name__ == "__main__":
    main(SCENARIOS, check)
