#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs on hosts with clocks of their own (namespace_hosts.py), which train with gloo, two ranks a host:

    hosts.py --build BUILD [--repeat N] [--keep DIR] [CASE...]
    hosts.py --build BUILD --again DIR [CASE...]

The wall clock is one, so each rank writes its host's true offset. In each case the stated error of the clocks covers the truth,
no rank is lost, who is slow or ended the job is named, and nobody else. At the end: how far clocks were off, and how far that was
stated, at most, and the closest that one came to what was stated.
Skipped, with the reason, where the machine cannot make such hosts, or PyTorch is not installed, or the job itself did not
do what the case is about, which says nothing about the report."""
import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from cluster import Traces
from findings import findings_of
from namespace_hosts import Hosts
from built import built
from observed import clean_environment, json_of, run
from outcomes import Skip, wait_until
from repeated import main
from torch_python import python_or_skip

HERE = os.path.dirname(os.path.abspath(__file__))
CASE = RUN = REPORT = TOP = LIBRARY = SKEWCLOCK = PYTHON = ""
CLOCKS = {}  # by case: how far each was off, and how far that was stated, in us
A_HOST = 2  # ranks
SLOW_HOST = 1
SLOW_RANKS = [2, 3]
SLEEP_MS = 12
START_S = 400  # until six ranks have imported PyTorch and trained 20 steps, on two busy cores
DRIFTS_PPM = 0, 200, -300
WALLS_NS = 0, 30 * 10**9, 3600 * 10**9
CLEAR = 0.75  # of the steps: held up by the host that is slow


class NoResult(Skip):
    """The job did not do what the case is about."""

    def __init__(self, why):
        super().__init__(f"no result: {why}")


def wait_for_job(what, true):
    try:
        wait_until(what, true, START_S)
    except AssertionError as late:
        raise NoResult(late) from late


def skewed(hosts, host, setting, values):
    """The clock of a host as libskewclock.so changes it."""
    zero = time.monotonic_ns() + hosts.offsets_s[host] * 10**9
    return {"LD_PRELOAD": SKEWCLOCK, "SKEW_RANK": str(host), setting: ",".join(map(str, values)),
            "SKEW_ZERO_NS": str(zero)}


def job(hosts, host, rank, folder, **more):
    """Starts one rank on a host, as a launcher without restarts would."""
    world = A_HOST * len(hosts.processes)
    environment = clean_environment(
        RANK=str(rank), LOCAL_RANK=str(rank % A_HOST), WORLD_SIZE=str(world), MASTER_ADDR=hosts.address(0),
        MASTER_PORT="29400", OMP_NUM_THREADS="1", TRUTH=folder, **more)
    return hosts.start(host, [RUN, "--dir", folder, "--run", CASE, "--lib", LIBRARY, "--", PYTHON,
                              os.path.join(HERE, "hosts_rank.py")], environment)


def start_all(hosts, folder, slow=None, clocks=None, slow_hosts=(SLOW_HOST,), **more):
    """All ranks; those of the slow hosts with the variables in `slow` too. `clocks`: what skews them."""
    skews = [skewed(hosts, host, *clocks) if clocks else {} for host in range(len(hosts.processes))]
    return [job(hosts, rank // A_HOST, rank, folder, **more, **skews[rank // A_HOST],
                **(slow or {} if rank // A_HOST in slow_hosts else {}))
            for rank in range(A_HOST * len(hosts.processes))]


def finish(processes, failures=False):
    for rank, process in enumerate(processes):
        try:
            output, _ = process.communicate(timeout=START_S)
        except subprocess.TimeoutExpired as late:
            raise NoResult(f"rank {rank} did not end within {START_S} s") from late
        if process.returncode and not failures:
            raise NoResult(f"rank {rank}: {process.returncode}\n{output}")


def placed_apart(one, axis, truth):
    """How far a clock is from the axis by its offset and drift, at each moment of the truth: (its time, the true offset)."""
    apart = []
    for (at, ahead), (_, axis_ahead) in zip(truth[one["ranks"][0]], truth[axis["ranks"][0]]):
        stated = one["offset_ns"] + one["drift_ppm"] / 1e6 * (at - one["at_ns"])
        apart.append(abs(stated - ahead + axis_ahead) / 1e3)
    return max(apart)


def true_drift_ppm(one, axis, truth):
    """From the two moments of the truth. They are seconds apart, each is known to 3 us."""
    (at, ahead), (later, later_ahead) = truth[one["ranks"][0]]
    (_, axis_ahead), (_, axis_later) = truth[axis["ranks"][0]]
    return ((later_ahead - axis_later) - (ahead - axis_ahead)) / (later - at) * 1e6


def check_clocks(n, clock, folder):
    """Every host's place on the axis is within what is stated, and ranks of a host are never apart."""
    assert clock["aligned"], clock
    clocks = clock["clocks"]
    assert len(clocks) == n, clock
    truth = {}
    for one in clocks:
        first = one["ranks"][0]
        assert one["ranks"] == [first, first + 1], clock
        truth[first] = read_truth(folder, first)["clocks"]
    axis = next(one for one in clocks if one["error_us"] == 0)
    for one in clocks:
        off_us = placed_apart(one, axis, truth)
        print(f"{CASE}: {one['host']} is {off_us:.1f} us off, {one['error_us']:.1f} us are stated, "
              f"drift {one['drift_ppm']:.0f} ppm, to {one['drift_error_ppm']:.0f}")
        if one["error_us"]:
            CLOCKS.setdefault(CASE, []).append((off_us, one["error_us"]))
        assert off_us <= one["error_us"] + 5, (off_us, clock)  # each rank reads its offset to about 3 us
        assert one["error_us"] <= clock["between_hosts_us"], clock
        assert abs(true_drift_ppm(one, axis, truth) - one["drift_ppm"]) <= one["drift_error_ppm"] + 10, clock


def check_ranks(report, ranks):
    assert report["run"]["ranks_found"] == list(range(ranks)), report["run"]
    assert report["quality"]["partial_ranks"] == [], report["quality"]


def read_truth(folder, rank):
    with open(os.path.join(folder, f"truth-{rank}"), encoding="utf-8") as file:
        return json.load(file)


def steps_held_up(folder, ranks, slow_rank):
    """The share of the steps, of those in which that rank is slow, in which each host's rank was the last that was ready,
    by the wall clock that all share."""
    truth = [read_truth(folder, rank) for rank in range(ranks)]
    last = [max(range(ranks), key=lambda rank, of=step: truth[rank]["ready"][of]) // A_HOST
            for step in truth[slow_rank]["slow"] if step]
    return [last.count(host) / len(last) for host in range(ranks // A_HOST)]


def was_late(folder, ranks, rank):
    """Whether it did keep its peers waiting: typically later than their median by a twentieth of the step, in truth."""
    truth = [read_truth(folder, one) for one in range(ranks)]
    step = statistics.median(next - one for one, next in itertools.pairwise(truth[rank]["ready"]))
    late = [statistics.median(of[rank] - statistics.median(of[:rank] + of[rank + 1:])
                              for of in zip(*(one[point] for one in truth))) for point in ("ready", "after")]
    return max(late) > step / 20


def check_slow(report, wanted, folder, when=""):
    """The findings about slow ranks are about these, name their host, and say when they are slow. On a busy machine others
    can be as slow: then the case says nothing."""
    findings = [one for one in report["findings"] if one["id"] == "DIST.STRAGGLER" or "alone while" in one["title"]]
    named = sorted({rank for one in findings for rank in one["ranks"]})
    print(f"{CASE}: named {named}, the slow ones are {wanted}; "
          f"clocks of hosts are known to {report['quality']['clock']['between_hosts_us'] / 1e3:.1f} ms")
    for one in findings:
        print(f"{CASE}: {one['severity']}: {one['title']}; saving {one['saving_s']} s")
    held_up = steps_held_up(folder, len(report["run"]["ranks_found"]), wanted[0] if wanted else 0)
    print(f"{CASE}: steps held up by each host, in truth: {[f'{share:.0%}' for share in held_up]}")
    if wanted and named != wanted and sum(held_up[host] for host in {rank // A_HOST for rank in wanted}) < CLEAR:
        raise NoResult(f"other hosts were as slow: {held_up}")
    others = [rank for rank in named if rank not in wanted]
    if others and all(was_late(folder, len(held_up) * A_HOST, rank) for rank in others):
        raise NoResult(f"ranks {others} were late, too")
    assert named == wanted, [one["title"] for one in report["findings"]]
    names = report["run"]["hosts"]
    assert all(names[min(one["ranks"][0] // A_HOST, len(names) - 1)] in one["title"] for one in findings), findings
    assert all(when in one["title"] for one in findings), findings


def check_links(report, wanted):
    """A slow link is named by its host, or is said not to be known."""
    slow = findings_of(report, "DIST.SLOW_LINK")
    bound = [one["evidence"] for one in findings_of(report, "DIST.COMM_BOUND")]
    print(f"{CASE}: links {[one['title'] for one in slow]}")
    assert sorted({rank for one in slow for rank in one["ranks"]}) == wanted, slow
    assert all(report["run"]["hosts"][SLOW_HOST] in one["title"] for one in slow), slow
    assert wanted or len(report["run"]["hosts"]) < 3 or all("cannot tell" in one for one in bound), bound


def run_job(folder, n, names, slow, quota, link, clocks, **more):
    with Hosts(n, names) as hosts:
        if link:
            hosts.limit_link(SLOW_HOST, link)
        if quota:
            hosts.group_cores(SLOW_HOST)
        processes = start_all(hosts, folder, slow, clocks, **({"BURN_MS": "10", "AT_STEP": "1"} if quota else {}), **more)
        if quota:
            wait_for_job("step 1", lambda: os.path.exists(os.path.join(folder, "at-0")))
            hosts.limit_cores(SLOW_HOST, quota)
        finish(processes)


def train(folder, n, names=None, slow=None, quota=None, link=None, clocks=None, slow_links=(), slow_ranks=None, when="",
          **more):
    if not os.listdir(folder):
        run_job(folder, n, names, slow, quota, link, clocks, **more)
    report = Traces(REPORT, folder).report(CASE)
    check_ranks(report, A_HOST * n)
    check_clocks(n, report["quality"]["clock"], folder)
    check_slow(report, (slow_ranks or SLOW_RANKS) if slow or quota else [], folder, when)
    check_links(report, list(slow_links))
    return report


def quiet(folder):
    train(folder, 3)


def two_hosts(folder):
    train(folder, 2)


def slow_host(folder):
    train(folder, 3, slow={"SLEEP_MS": str(SLEEP_MS)})


def slow_host_of_two(folder):
    train(folder, 2, slow={"SLEEP_MS": str(SLEEP_MS)})


def two_slow_hosts(folder):
    train(folder, 3, slow={"SLEEP_MS": str(SLEEP_MS)}, slow_hosts=(0, SLOW_HOST), slow_ranks=[0, 1, *SLOW_RANKS])


def slow_each_fourth(folder):
    """Ranks of a host sleep in each fourth step."""
    train(folder, 3, slow={"SLEEP_MS": str(4 * SLEEP_MS), "SLOW_EVERY": "4"}, STEPS="80", when="every 4")


def slow_each_tenth(folder):
    train(folder, 3, slow={"SLEEP_MS": str(8 * SLEEP_MS), "SLOW_EVERY": "10"}, STEPS="80", when="every 10")


def slow_at_times(folder):
    """In three steps of ten, at no fixed distance."""
    train(folder, 3, slow={"SLEEP_MS": str(4 * SLEEP_MS), "SLOW_SHARE": "0.3"}, STEPS="80", when=" of ")


def quota_slow_link(folder):
    train(folder, 3, quota=0.1, link="100mbit", STEPS="40")


def quota(folder):
    """Two ranks that need 10 ms of a core in each step, and together have a tenth of one once they train."""
    train(folder, 3, quota=0.1, STEPS="40")


def slow_link(folder):
    train(folder, 3, link="100mbit")


def slow_link_groups(folder):
    """Each two hosts have a communicator."""
    train(folder, 3, link="100mbit", slow_links=SLOW_RANKS, EXCHANGE="groups", STEPS="30")


def slow_link_messages(folder):
    """Each two hosts exchange messages."""
    train(folder, 3, link="100mbit", slow_links=SLOW_RANKS, EXCHANGE="messages", STEPS="30")


def drift(folder):
    train(folder, 3, clocks=("SKEW_DRIFT_PPM", DRIFTS_PPM), STEPS="150")


def drift_slow_host(folder):
    train(folder, 3, slow={"SLEEP_MS": str(SLEEP_MS)}, clocks=("SKEW_DRIFT_PPM", DRIFTS_PPM))


def wall_clocks(folder):
    """Wall clocks 30 s and an hour apart; a rank is killed, and all are started again, by hand."""
    if not os.listdir(folder):
        with Hosts(3) as hosts:
            walls = ("SKEW_WALL_NS", WALLS_NS)
            finish(start_all(hosts, folder, clocks=walls, DIE="3:20", STEPS="40"), failures=True)
            finish(start_all(hosts, folder, clocks=walls, DIE="3:20", STEPS="40"))
    report, first = check_attempts(folder, 6, 6)
    check_clocks(3, report["quality"]["clock"], folder)
    check_slow(report, [], folder)
    assert first["run_end"]["culprits"] == [3], first["run_end"]


def both(folder):
    train(folder, 3, slow={"SLEEP_MS": str(2 * SLEEP_MS)}, link="100mbit")


def one_name(folder):
    """Hosts whose names are equal are still several."""
    report = train(folder, 3, names=["node"] * 3, slow={"SLEEP_MS": str(SLEEP_MS)})
    text = run(REPORT, "--width", "100", "--run", CASE, folder).stdout
    assert "on 3 hosts" in text, text
    listed = run(REPORT, "--list", folder).stdout
    assert "on 3 hosts" in listed, listed
    assert len(report["quality"]["clock"]["clocks"]) == 3


def agent(hosts, host, folder, nodes, name, **more):
    """torchrun on a host, which starts ranks again after a failure. Without a name its run has one of its own."""
    # A store for each start: the shared one needs equal counts of restarts, which torchrun does not ensure.
    environment = clean_environment(OMP_NUM_THREADS="1", TRUTH=folder, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1", **more)
    return hosts.start(host, [
        RUN, "--dir", folder, *(["--run", name] if name else []), "--lib", LIBRARY, "--",
        PYTHON, "-m", "torch.distributed.run",
        "--nnodes", nodes, "--nproc-per-node", str(A_HOST), "--rdzv-backend", "c10d", "--rdzv-id", "job",
        "--rdzv-endpoint", f"{hosts.address(0)}:29400", "--rdzv-conf", "last_call_timeout=3,join_timeout=300",
        "--local-addr", hosts.address(host), "--max-restarts", "3", "--monitor-interval", "0.2",
        os.path.join(HERE, "hosts_rank.py")], environment)


def agents(hosts, folder, nodes, name, **more):
    return [agent(hosts, host, folder, nodes, name, **more) for host in range(len(hosts.processes))]


def check_attempts(folder, ranks, earlier_ranks):
    """The last start is complete, the one before is described, and can be shown."""
    report = Traces(REPORT, folder).report(CASE)
    attempts = report["run"]["attempts"]
    print(f"{CASE}: {[(one['ranks'], one['hosts'], one['world_size'], one['how'], one['summary']) for one in attempts]}")
    assert [one["ranks"] for one in attempts] == [earlier_ranks, ranks], attempts
    assert report["run"]["attempt"] == 2 and report["run"]["world_size"] == ranks, report["run"]
    check_ranks(report, ranks)
    first = json_of(REPORT, "--run", CASE, "--attempt", "1", folder)
    assert first["run"]["attempt"] == 1 and first["run"]["ranks_found"] == list(range(earlier_ranks)), first["run"]
    assert "2 attempts" in run(REPORT, "--list", folder).stdout
    page = run(TOP, "--once", "--width", "100", folder).stdout
    assert f"start 2, the one before had {earlier_ranks} ranks" in page, page
    return report, first


def elastic_rank(folder):
    """kill -9 of a rank; torchrun starts all ranks again."""
    if not os.listdir(folder):
        with Hosts(3) as hosts:
            finish(agents(hosts, folder, "3", CASE, DIE="3:20", STEPS="40"))
    report, first = check_attempts(folder, 6, 6)
    check_clocks(3, report["quality"]["clock"], folder)
    check_slow(report, [], folder)
    assert first["run_end"]["culprits"] == [3], first["run_end"]
    assert "Rank 3" in report["run"]["attempts"][0]["summary"], report["run"]["attempts"]


def check_one_job(folder, names, culprits):
    """Two starts of four ranks on two hosts, of which each run has some: report, list and top put them together."""
    for name in names:
        report = json_of(REPORT, "--run", name, folder)
        attempts = report["run"]["attempts"]
        print(f"{CASE}: {name}: {[(one['ranks'], one['hosts'], one['summary']) for one in attempts]}")
        check_ranks(report, 4)
        assert [(one["ranks"], one["hosts"]) for one in attempts] == [(4, 2), (4, 2)], attempts
        assert all(word in attempts[0]["summary"] for word in culprits), attempts
        page = run(TOP, "--once", "--run", name, "--width", "100", folder).stdout
        assert "start 2, the one before had 4 ranks" in page and "4 ranks · 2 hosts" in page, page
    listed = run(REPORT, "--list", folder).stdout.splitlines()
    assert len(listed) == 1 and "4 ranks on 2 hosts" in listed[0] and "2 attempts" in listed[0], listed
    assert all(name in listed[0] for name in names), listed
    stacks = run(os.path.join(os.path.dirname(REPORT), "tscope-stacks"), folder, ok=None).stdout
    assert "on node0 has ended: rank 0 1\n" in stacks and "on node1 has ended: rank 2 3\n" in stacks, stacks


def elastic_own_names(folder):
    """The same where each host names its run itself."""
    if not os.listdir(folder):
        with Hosts(2) as hosts:
            finish(agents(hosts, folder, "2", name=None, DIE="3:20", STEPS="40"))
    names = Traces(REPORT, folder).runs()
    assert len(names) == 2, names
    check_one_job(folder, names, ("Rank 3", "SIGKILL"))


def elastic_agent(folder):
    """All of the job on one host is lost, and started again there by hand: its run has another name then."""
    if not os.listdir(folder):
        with Hosts(2) as hosts:
            first, lost = agents(hosts, folder, "2", name=None, STEPS="60", AT_STEP="20")
            wait_for_job("step 20", lambda: os.path.exists(os.path.join(folder, "at-0")))
            from_host(hosts, 1, "sh", "-c", "kill -9 -1")
            lost.communicate()
            finish([first, agent(hosts, 1, folder, "2", None, STEPS="60")])
    names = Traces(REPORT, folder).runs()
    assert len(names) == 3, names
    check_one_job(folder, names, ("node1",))


def elastic_host(folder):
    """kill -9 of a host; the job goes on with those that are left, and their ranks have other numbers."""
    if not os.listdir(folder):
        with Hosts(3) as hosts:
            processes = agents(hosts, folder, "2:3", CASE, STEPS="60", AT_STEP="20")
            wait_for_job("step 20", lambda: os.path.exists(os.path.join(folder, "at-0")))
            hosts.kill(2)
            finish(processes[:2])
            processes[2].communicate()
    report, first = check_attempts(folder, 4, 6)
    check_slow(report, [], folder)
    lost = sorted(one["rank"] for one in first["run_end"]["ranks"] if one["host"] == "node2")
    print(f"{CASE}: culprits {first['run_end']['culprits']}, on the lost host {lost}")
    assert sorted(first["run_end"]["culprits"]) == lost, first["run_end"]
    assert "node2" in first["run_end"]["summary"], first["run_end"]


def from_host(hosts, host, *command):
    output, _ = hosts.start(host, command, clean_environment()).communicate(timeout=120)
    return output


def hang(folder):
    """A rank does not come any more. Report and top see it from another host."""
    def find_hang():
        report = json.loads(from_host(hosts, 2, REPORT, "--format", "json", folder))
        return findings_of(report, "DIST.HANG")

    with Hosts(3) as hosts:
        processes = start_all(hosts, folder, HANG="3:20", AT_STEP="20", TSCOPE_STALL="2")
        wait_for_job("step 20", lambda: os.path.exists(os.path.join(folder, "at-0")))
        hangs = wait_until("the hang is reported", find_hang)
        top = json.loads(from_host(hosts, 0, TOP, "--once", "--format", "json", folder).splitlines()[-1])
        page = from_host(hosts, 0, TOP, "--once", "--width", "80", folder)
        stacks = from_host(hosts, 0, os.path.join(os.path.dirname(REPORT), "tscope-stacks"), folder)
        for host in range(3):
            hosts.kill(host)
        for process in processes:
            process.communicate()
    print(f"{CASE}: report: {[one['title'] for one in hangs]}")
    for rank in range(6):
        assert f"rank {rank} on node{rank // 2}  now  " in stacks, stacks
    print(f"{CASE}: top: {json.dumps(top['waits'])[:300]}\n{page}")
    alerts = [line for line in page.splitlines() if line.startswith("! ")]
    assert any("rank 3 on node1 has not come to all_reduce" in line for line in alerts), page
    assert any(line.split()[:1] == ["3"] and "node1" in line for line in page.splitlines()), page
    assert [one["ranks"] for one in hangs] == [[3]], hangs
    assert "node1" in hangs[0]["title"], hangs[0]
    assert all(wait["absent"] == [3] for wait in top["waits"]) and top["waits"], top["waits"]


def copies(folder):
    """Each host's files are copied a second after those of the one before, while the job runs."""
    with Hosts(3) as hosts, tempfile.TemporaryDirectory(prefix="tscope-copies-") as copy:
        processes = start_all(hosts, folder, AT_STEP="20", STEPS="200")
        wait_for_job("step 20", lambda: os.path.exists(os.path.join(folder, "at-0")))
        os.mkdir(os.path.join(copy, CASE))
        for host in (1, 0, 2):
            for name in os.listdir(os.path.join(folder, CASE)):
                if name.startswith(f"node{host}-"):
                    shutil.copy(os.path.join(folder, CASE, name), os.path.join(copy, CASE))
            time.sleep(1)
        report = Traces(REPORT, copy).report(CASE)
        for host in range(3):
            hosts.kill(host)
        for process in processes:
            process.communicate()
    print(f"{CASE}: {report['run_end']['how']}: {report['run_end']['summary']}; "
          f"{[(one['id'], one['severity']) for one in report['findings']]}")
    assert report["run_end"]["how"] != "early", report["run_end"]
    assert not any(one["id"] in ("RUN.ENDED_EARLY", "DIST.HANG") for one in report["findings"]), report["findings"]


CASES = {function.__name__.replace("_", "-"): function
         for function in (quiet, two_hosts, slow_host, slow_host_of_two, two_slow_hosts, slow_each_fourth, slow_each_tenth,
                          slow_at_times, quota_slow_link, quota, slow_link, slow_link_groups, slow_link_messages, both,
                          one_name, drift, drift_slow_host, wall_clocks, elastic_rank, elastic_own_names, elastic_agent, elastic_host, hang,
                          copies)}
SEEN_LIVE = ("hang", "copies")  # what these judge is not in the folder afterwards


def check(name, _, folder):
    global CASE  # pylint: disable=global-statement
    CASE = name
    CASES[name](folder)


def judge(name, _, folder):
    if name in SEEN_LIVE:
        raise NoResult("this case judges a job that runs")
    check(name, _, folder)


def prepare(build):
    global RUN, REPORT, TOP, LIBRARY, SKEWCLOCK, PYTHON  # pylint: disable=global-statement
    RUN, REPORT, TOP, LIBRARY, SKEWCLOCK = (built(build, name) for name in (
        "tscope-run", "tscope-report", "tscope-top", "libtscope.so", "libskewclock.so"))
    PYTHON = python_or_skip()


def print_clocks():
    for case, clocks in CLOCKS.items():
        off, stated = (max(one[i] for one in clocks) / 1e3 for i in (0, 1))
        print(f"{case}: clocks at most {off:.2f} ms off, at most {stated:.2f} ms stated, the closest at "
              f"{max(off / stated for off, stated in clocks):.0%}")


if __name__ == "__main__":
    try:
        main(CASES, check, judge, prepare)
    finally:
        print_clocks()
