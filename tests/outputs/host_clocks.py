# SPDX-License-Identifier: MIT
"""Clocks of hosts that are seconds apart and drift, compared with the truth: each lies within the error that the report
states. That NTP sets wall clocks while the job runs changes nothing. Hosts that nothing ties to the others are named, no
clock of theirs is guessed, and the others are compared without them, as long as these are most of the ranks.

Usage: host_clocks.py TSCOPE_REPORT TRACEGEN [RANKS]
"""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from observed import json_of, run  # noqa: E402

REPORT, TRACEGEN = sys.argv[1:3]
RANKS = int(sys.argv[3]) if len(sys.argv) > 3 else 48
CLOCK_BASE_NS = 1_000_000_000_000  # of tracegen: what all clocks show before the start, but for their offsets


def report_of(*options):
    """The report, and what is true of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        run(TRACEGEN, "--ranks", RANKS, "--steps", "30", "--buckets", "2", "--kernels", "1", "--data-ns", "200000000",
            "--chunk-bytes", "8192", "--skew-hosts", *options, folder)
        with open(glob.glob(os.path.join(folder, "*.truth.json"))[0], encoding="utf-8") as truth:
            return json_of(REPORT, folder), json.load(truth)["per_rank"]


def clock_of(*options):
    report, truth = report_of(*options)
    return report["quality"]["clock"], truth


def check_wrong_wall_clock():
    """The host that is compared with nobody has a wall clock that is minutes ahead: that makes the run no longer."""
    whole, wrong = (report_of("--lone-hosts", "1", "--wall-ahead-ns", str(ns))[0] for ns in (0, 20_000_000_000))
    assert whole["run"]["duration_s"] == wrong["run"]["duration_s"] < 60, (whole["run"], wrong["run"])


def check_clock(one, own, first):
    """Returns by how much the clock of a host is wrong, in us, what is stated, and the error of its drift."""
    true_ns = (one["at_ns"] - CLOCK_BASE_NS - own["offset_ns"]) / (1 + own["drift_ppm"] * 1e-6)
    shown = CLOCK_BASE_NS + true_ns * (1 + first["drift_ppm"] * 1e-6) + first["offset_ns"]
    error_us = abs(one["offset_ns"] - (shown - one["at_ns"])) / 1e3
    drift = abs(one["drift_ppm"] - (first["drift_ppm"] - own["drift_ppm"]))
    assert error_us <= one["error_us"] + 0.001, (one, own, error_us)  # in whole nanoseconds
    assert drift <= one["drift_error_ppm"] + 0.01, (one, own, drift)  # products of drifts are left out
    return error_us, one["error_us"], drift


def check_untied(lone, mute):
    """The last hosts have a communicator of their own, or do not record when collectives ran."""
    clock, truth = clock_of("--lone-hosts", str(lone), "--mute-hosts", str(mute))
    hosts = -(-RANKS // 8)
    first = hosts - lone - mute
    names = "node%03u" % first if first + 1 == hosts else "node[%03u-%03u]" % (first, hosts - 1)
    assert clock["aligned"] == (2 * first > hosts) and len(clock["clocks"]) == hosts, clock
    for one in clock["clocks"]:
        own = one["ranks"][0]
        if own >= first * 8:
            assert one["offset_ns"] is None and one["error_us"] is None, clock
        else:
            check_clock(one, truth[own], truth[clock["clocks"][0]["ranks"][0]])
    told = "ranks %u-%u (%u of %u, on %s) are not linked to rank 0" % (first * 8, RANKS - 1, RANKS - first * 8, RANKS, names)
    assert told in clock["method"], (told, clock["method"])


def main():
    clock, truth = clock_of()
    assert clock["aligned"] and len(clock["clocks"]) == -(-RANKS // 8), clock
    first, worst = truth[clock["clocks"][0]["ranks"][0]], [0, 0, 0]
    for one in clock["clocks"]:
        worst = list(map(max, worst, check_clock(one, truth[one["ranks"][0]], first)))
    print("%u hosts: largest error %.2f us, stated %.2f us; of drifts %.3f ppm" % (len(clock["clocks"]), *worst))
    stepped, _ = clock_of("--wall-step-ns", "1700000000")
    assert stepped == clock, "a step of wall clocks changed how clocks are tied"
    check_untied(1, 0)
    check_untied(0, 2)
    check_untied(1, 1)
    check_untied(3, 0)
    check_wrong_wall_clock()


main()
