#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs of a directory: what `tscope list` says of them, while they run and after, what `tscope prune` removes, and what
`tscope run` says where it cannot write, or cannot any more: keep_house.py BUILD-FOLDER."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import trace_header  # noqa: E402
from built import built, standins_of  # noqa: E402
from in_folder import InFolder  # noqa: E402
from mounts import mount_read_only, mount_small  # noqa: E402
from observed import clean_environment, json_of, json_so_far  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402

BUILD = sys.argv[1]
TSCOPE = built(BUILD, "tscope")
TRACEGEN = built(BUILD, "tracegen")
TRAIN = built(BUILD, "train")
DAY_NS = 86400 * 10**9
ENV = clean_environment(LD_LIBRARY_PATH=standins_of(BUILD))


def tscope(*arguments, **env):
    return subprocess.run([TSCOPE, *arguments], capture_output=True, text=True, env={**ENV, **env}, timeout=300)


def set_alive(path, realtime_ns, clock_is=1):
    """The last sign of life in a trace, whose header says how fast its clock is, as known at the start."""
    header = trace_header.of_file(path)
    ticks = (realtime_ns - header.start_realtime_ns) * header.tick_hz // 10**9
    trace_header.patch(path, alive_ticks=header.start_ticks + ticks, tick_hz=int(header.tick_hz * clock_is))


def bytes_in(row):
    """The size that a row of the list says, in the unit that fits it."""
    number, unit = re.search(r"  ([\d.]+) (kB|MB)  ", row).groups()
    return float(number) * {"kB": 1e3, "MB": 1e6}[unit]


class House(InFolder):
    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.folder, "traces")
        os.mkdir(self.folder, 0o700)

    def mounted(self, how, *arguments):
        try:
            return how(*arguments)
        except Skip:
            self.skipTest("mounting is refused here")

    def write(self, name, days_ago, *options):
        """A run of two ranks that began so many days ago, in a folder of its name."""
        realtime = time.time_ns() - int(days_ago * DAY_NS)
        subprocess.run([TRACEGEN, "--run", name, "--ranks", "2", "--steps", "20", "--realtime", str(realtime), *options,
                        self.folder], check=True, capture_output=True)
        os.unlink(os.path.join(self.folder, name + ".truth.json"))

    def listed(self):
        done = tscope("list", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {line.split()[0]: line for line in done.stdout.splitlines()}

    def pruned(self, *options):
        done = tscope("prune", *options, self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.findall(r"(?m)^(\w+) .*(?:removed|would go): ", done.stdout), done.stdout

    def test_a_run_is_listed_with_size_ranks_end_and_worst_finding(self):
        self.write("slow", 1, "--slow-rank", "1", "--slow-factor", "3")
        self.write("even", 2, "--data-ns", "1000")
        self.write("lost", 3, "--lost-ranks", "1")
        self.write("more", 4, "--ranks", "3")
        for name in os.listdir(os.path.join(self.folder, "more")):
            trace_header.patch(os.path.join(self.folder, "more", name), world_size=2)
        rows = self.listed()
        self.assertEqual(list(rows), ["slow", "even", "lost", "more"])
        size = sum(os.path.getsize(os.path.join(self.folder, "slow", name))
                   for name in os.listdir(os.path.join(self.folder, "slow")))
        self.assertAlmostEqual(bytes_in(rows["slow"]) / size, 1, delta=0.006)  # three digits are said
        self.assertRegex(rows["slow"], r"  2 ranks on 1 host  .* critical: Rank 1 ")
        self.assertRegex(rows["lost"], r"  1 of 2 ranks on 1 host")
        self.assertRegex(rows["more"], r"  3 processes on 1 host") # not all of them are ranks
        self.assertNotIn("critical", rows["even"])

    def test_old_runs_go_by_age_number_and_size_and_first_it_only_says_so(self):
        for day in range(1, 6):
            self.write(f"d{day}", day - 0.5)
        each = bytes_in(self.listed()["d1"])
        for options, gone in ((["--older-than", "3"], ["d4", "d5"]), (["--keep", "2"], ["d3", "d4", "d5"]),
                              (["--max-size", str(3.5 * each)], ["d4", "d5"]),
                              (["--older-than", "4", "--keep", "4"], ["d5"]), (["--keep", "9"], [])):
            self.assertEqual(self.pruned(*options)[0], gone, options)
        self.assertEqual(len(self.listed()), 5)
        self.write("d2", 1.5, "--steps", "3000")
        self.assertEqual(self.pruned("--max-size", str(3.5 * each))[0], ["d2", "d3", "d4", "d5"], "the oldest go first")
        self.write("d2", 1.5)
        with open(os.path.join(self.folder, "d5", "notes.txt"), "w", encoding="utf-8") as file:
            file.write("beside the traces")
        self.assertEqual(self.pruned("--older-than", "3", "--yes")[0], ["d4", "d5"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["d1", "d2", "d3"])
        self.assertEqual(tscope("prune", self.folder).returncode, 2)
        self.assertIn("--older-than", tscope("prune", self.folder).stderr)

    def test_a_copy_of_a_run_is_a_run_of_its_own(self):
        self.write("mine", 1)
        files = sorted(os.listdir(os.path.join(self.folder, "mine")))
        shutil.copytree(os.path.join(self.folder, "mine"), os.path.join(self.folder, "kept"))
        self.assertEqual({name: re.search(r"\d+ ranks", row)[0] for name, row in self.listed().items()},
                         {"mine": "2 ranks", "kept": "2 ranks"})
        self.assertEqual(self.pruned("--keep", "1", "--yes")[0], ["mine"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "kept"))), files)

    def test_what_cannot_be_read_counts_with_its_size(self):
        self.write("new", 1)
        os.mkdir(os.path.join(self.folder, "odd"))
        with open(os.path.join(self.folder, "odd", "host-1-1.tscope"), "wb") as file:
            file.write(b"no trace" * (1 << 20))
        self.assertRegex(self.listed()["odd"], r"  8\.39 MB  unreadable")
        self.assertEqual(self.pruned("--max-size", "8M", "--yes")[0], ["odd"])
        self.assertEqual(os.listdir(self.folder), ["new"])

    def test_a_run_that_cannot_be_removed_stays_and_the_others_go(self):
        for day in (1, 2, 3):
            self.write(f"d{day}", day)
        stays, held = os.path.join(self.folder, "d2"), contextlib.ExitStack()
        self.addCleanup(held.close)
        if os.geteuid() == 0:  # root may remove all files but those of a folder that is busy or read-only
            held.callback(self.mounted(mount_read_only, stays))
        else:
            os.chmod(stays, 0o500)
            held.callback(os.chmod, stays, 0o700)
        done = tscope("prune", "--older-than", "0.5", "--yes", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(os.listdir(self.folder), ["d2"])
        self.assertEqual(re.findall(r"(?m)^(\w+) .*  (removed|stays): ", done.stdout),
                         [("d1", "removed"), ("d2", "stays"), ("d3", "removed")])
        self.assertRegex(done.stdout, r"\n2 runs removed, .*; 1 stays, ")
        self.assertIn("run d2 could not be removed: ", done.stderr)

    def test_new_runs_hold_a_bound(self):
        for day in (1, 2):
            self.write(f"d{day}", day)
        for arguments, env in ((["--max-size", "1"], {}), ([], {"TSCOPE_DIR_MAX": "1"})):
            self.write("d1", 1)
            done = tscope("run", *arguments, "--dir", self.folder, "--", "echo", "hello", **env)
            self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))
            self.assertIn("removed: more than --max-size", done.stderr)
            self.assertEqual(os.listdir(self.folder), [])

    def test_a_run_that_runs_is_said_to_run(self):
        command = [TSCOPE, "run", "--dir", self.folder, "--run", "live", "--", TRAIN, "--ranks", "2", "--steps", "100000"]
        with subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True) as job:
            try:
                def trains():
                    found = json_so_far(TSCOPE, "report", self.folder)
                    return found if found and found["steps"]["count"] > 5 else None
                found = wait_until("steps", trains, each=0.3)
                severities = [f["severity"] for f in found["findings"] if "still runs" in f["title"]]
                self.assertEqual(severities, ["info"])
                text = tscope("report", self.folder).stdout
                self.assertIn("runs still  2 ranks", text)
                self.assertNotIn("did not end normally (", text)
                self.assertRegex(self.listed()["live"], "  runs")
                self.assertEqual(self.pruned("--max-size", "1", "--yes")[0], [])
            finally:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        self.assertRegex(self.listed()["live"], "  (no end|killed)")
        self.assertIn("did not end normally", tscope("report", self.folder).stdout)
        self.assertEqual(self.pruned("--max-size", "1", "--yes")[0], ["live"])

    def test_a_run_of_another_host_may_run(self):
        """No process of the traces is here. What was alive within the last hour is not removed."""
        for name, minutes in ("live", 1), ("dead", 100):
            self.write(name, 0.1, "--hang-rank", "1")
            for trace in os.scandir(os.path.join(self.folder, name)):
                set_alive(trace.path, time.time_ns() - int(minutes * 60e9))
        for name, severity, title in (("live", "info", "The run may still run: this is what it did until now"),
                                      ("dead", "warning", "2 ranks did not end normally")):
            found = json_of(TSCOPE, "report", os.path.join(self.folder, name))["findings"]
            self.assertIn((severity, title), [(f["severity"], f["title"]) for f in found])
        self.write("inexact", 1, "--hang-rank", "1")
        for trace in os.scandir(os.path.join(self.folder, "inexact")):
            set_alive(trace.path, time.time_ns() - int(60e9), clock_is=0.995)
        self.assertIn("The run may still run", tscope("report", os.path.join(self.folder, "inexact")).stdout)
        shutil.rmtree(os.path.join(self.folder, "inexact"))
        rows = self.listed()
        self.assertRegex(rows["live"], "  may run")
        self.assertRegex(rows["dead"], "  no end")
        self.assertEqual(self.pruned("--max-size", "1", "--yes")[0], ["dead"])
        self.assertEqual(os.listdir(self.folder), ["live"])

    def of_this_host(self, name, booted_s, **fields):
        """The traces of a run, as of processes that this machine does not have, written on a host of its name that was
        booted so many seconds after it."""
        for trace in os.scandir(os.path.join(self.folder, name)):
            start = trace_header.of_file(trace.path).start_realtime_ns
            ahead = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(booted_s * 1e9)
            trace_header.patch(trace.path, host=os.uname().nodename.encode(), pid=2**22 + 1,
                               start_monotonic_ns=start - ahead, **fields)

    def test_a_run_of_another_host_of_the_same_name_may_run(self):
        for name, booted_s in ("here", 0), ("elsewhere", -7):
            self.write(name, 0.1, "--hang-rank", "1")
            for trace in os.scandir(os.path.join(self.folder, name)):
                set_alive(trace.path, time.time_ns() - int(60e9))
            self.of_this_host(name, booted_s)
        rows = self.listed()
        self.assertRegex(rows["here"], "  no end")
        self.assertRegex(rows["elsewhere"], "  may run")
        self.assertEqual(self.pruned("--max-size", "1", "--yes")[0], ["here"])

    def test_who_ended_at_once_is_not_asked_for_its_stacks(self):
        self.write("over", 0.1, "--hang-rank", "1")
        self.of_this_host("over", 0, end_kind=2)  # _exit()
        done = tscope("stacks", os.path.join(self.folder, "over"))
        self.assertIn("has ended", done.stdout + done.stderr)
        self.assertNotIn("has died", done.stdout + done.stderr)

    def test_why_tscope_is_off_is_said_before_and_after(self):
        place = os.path.join(self.folder, "file")
        with open(place, "w", encoding="utf-8"):
            pass
        link = os.path.join(self.folder, "link")
        os.symlink(self.folder, link)
        for where, what in ((place, "is not a directory"), (link, "is a symbolic link, and what it points to is not used")):
            done = tscope("run", "--dir", where, "--", "echo", "hello")
            self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))
            first, last = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
            self.assertIn(f"{where} {what}, so the command runs without tscope", first)
            self.assertIn(f"tscope was off: {where} {what}", last)
        if os.geteuid():
            os.chmod(self.folder, 0o500)
            done = tscope("run", "--dir", self.folder, "--", "true")
            self.assertIn("cannot be written to", done.stderr)

    def test_that_it_is_switched_off_is_said_before_and_after(self):
        done = tscope("run", "--dir", self.folder, "--", "echo", "hello", TSCOPE="off")
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))
        first, last = done.stderr.splitlines()
        self.assertIn("the environment has TSCOPE=off, so the command runs without tscope", first)
        self.assertEqual(last, "tscope: tscope was off: the environment has TSCOPE=off")
        self.assertNotIn("off", tscope("run", "--dir", self.folder, "--", "true", TSCOPE="on").stderr)

    def test_a_directory_that_cannot_be_made(self):
        done = tscope("run", "--dir", "/proc/none", "--", "true")
        self.assertIn("tscope was off: /proc cannot be written to", done.stderr.splitlines()[-1])
        if os.access("/", os.W_OK):
            name = f"/tscope-none-{os.getpid()}"
            done = tscope("run", "--dir", name, "--", "true")
            self.assertIn("no trace here yet", done.stderr.splitlines()[-1])
            self.assertFalse(os.path.exists(name))

    def small_disk(self, megabytes):
        place = os.path.join(self.folder, "small")
        self.addCleanup(self.mounted(mount_small, place, megabytes, "700"))
        return place

    def train_on(self, place, before, *options):
        """What the job and `tscope run` say of a job of two ranks whose first command is `before`."""
        command = f"{before}; exec {TRAIN} --ranks 2 --steps 20 {' '.join(options)}"
        done = tscope("run", "--dir", os.path.join(place, "traces"), "--", "sh", "-c", command)
        self.assertEqual((done.returncode, done.stdout), (0, "loss 3\n"))
        return done.stderr.splitlines()

    def test_a_name_that_no_folder_can_have_is_found_again(self):
        command = ["--run", "my run/1", "--", TRAIN, "--ranks", "2", "--steps", "12"]
        done = tscope("run", "--dir", self.folder, *command)
        self.assertRegex(done.stderr, r"2 ranks recorded; .* --run my_run_1\n$")
        self.assertEqual(os.listdir(self.folder), ["my_run_1"])
        killed = f'(until ls {self.folder}/one_more/*.tscope; do sleep 0.1; done; kill -9 $$) & exec {TRAIN} --steps 9999'
        done = tscope("run", "--dir", self.folder, "--run", "one more", "--", "sh", "-c", killed, RANK="0", WORLD_SIZE="1")
        self.assertEqual(done.returncode, -signal.SIGKILL)
        report = json_of(TSCOPE, "report", "--run", "one_more", self.folder)
        self.assertEqual(report["run_end"]["ranks"][0]["signal"], signal.SIGKILL, "tscope run wrote how its child ended")

    def test_of_very_many_traces_only_some_are_opened(self):
        self.write("one", 0)
        one = os.path.join(self.folder, "one")
        first = os.path.join(one, sorted(os.listdir(one))[0])
        copy = f'mkdir -m 700 {self.folder}/many; for i in $(seq 1001); do head -c 8192 {first} > {self.folder}/many/$i.tscope; done'
        done = tscope("run", "--dir", self.folder, "--run", "many", "--", "sh", "-c", copy)
        self.assertRegex(done.stderr, r"tscope: 1001 processes recorded; .* --run many\n$")

    def test_ranks_that_are_each_started_by_a_tscope_run_are_one_run(self):
        env = {**ENV, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TSCOPE_DIR": self.folder}
        tscope("run", "--dir", self.folder, "--run", "before", "--", TRAIN, "--ranks", "1", "--steps", "12")
        ranks = [subprocess.Popen([TSCOPE, "run", "--", TRAIN, "--alone", "1", "--steps", "12"], stderr=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, text=True, env={**env, "RANK": str(rank)}) for rank in range(2)]
        said = [rank.communicate()[1] for rank in reversed(ranks)][1]
        name, = set(os.listdir(self.folder)) - {"before"}
        self.assertRegex(said, rf"[12] ranks? recorded; .* --run {name}\n$")
        self.assertEqual(len(os.listdir(os.path.join(self.folder, name))), 2)

    def test_a_disk_that_is_full_is_said_before_and_after(self):
        place = self.small_disk(2)
        fill = f"head -c 4M /dev/zero >{place}/filler 2>/dev/null"
        subprocess.run(["sh", "-c", fill], check=False)
        lines = self.train_on(place, ":")
        self.assertRegex(lines[0], f"the disk of {place} is full: 0.0 MB are free, so the command runs without tscope")
        self.assertRegex(lines[-1], f"tscope was off: the disk of {place}.* is full")

    def test_a_disk_that_fills_during_the_job_is_said_after_it(self):
        place = self.small_disk(64)
        fill = f"head -c 80M /dev/zero >{place}/filler 2>/dev/null"
        lines = self.train_on(place, fill)
        self.assertNotRegex(lines[0], "so the command runs without tscope")
        self.assertRegex(lines[-1], f"tscope was off: the disk of {place}.* is full")

    def test_a_disk_with_room_for_a_part_of_the_traces_has_that_part_and_the_report_says_so(self):
        place = self.small_disk(8)
        lines = self.train_on(place, ":", "--steps", "4000", "--forward-ms", "0.1", "--backward-ms", "0.1",
                              "--optimizer-ms", "0.1")
        self.assertIn("2 ranks recorded", lines[-1])
        self.assertGreater(json_of(TSCOPE, "report", os.path.join(place, "traces"))["quality"]["lost"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
