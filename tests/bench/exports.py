#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how fast timelines and databases are written, compared with the fastest possible way.

usage: exports.py TRACEGEN TSCOPE_REPORT [RANKS...]

Writes runs of RANKS (8 32) with 100,000 events each, with all their steps. Rates are by CPU time of all
threads, with reading and analysis of the traces: on a machine with idle cores the wall time is at most
that. The floors: the same bytes written to a file in blocks of 1 MiB, and the same rows inserted from
memory into a database with the same settings by executemany() of Python's sqlite3.
"""
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from processes import cost_of  # noqa: E402

EVENTS = 100000


def cost(command):
    return cost_of(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)[:3]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def packets(path):
    """The number of packets of a trace: nearly all are begins and ends of slices, and values of counters."""
    with open(path, "rb") as file:
        data = file.read()
    at = count = 0
    while at < len(data):
        length, at = varint(data, at + 1)
        at += length
        count += 1
    return count


def write_bytes(path, total):
    block = os.urandom(1 << 20)
    begin = time.process_time()
    with open(path, "wb", buffering=0) as file:
        for _ in range(total >> 20):
            file.write(block)
    return time.process_time() - begin


def tables(path):
    with sqlite3.connect(path) as db:
        names = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        return [(name, sql, db.execute(f"SELECT * FROM {name}").fetchall()) for name, sql in names]


def write_rows(path, contents):
    begin = time.process_time()
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "page_size = 8192"):
        db.execute("PRAGMA " + pragma)
    db.execute("BEGIN")
    for name, sql, rows in contents:
        db.execute(sql)
        if rows:
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    db.execute("COMMIT")
    db.close()
    return time.process_time() - begin


def main():
    tracegen, report = sys.argv[1:3]
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'ranks':>5} {'what':<14} {'MiB':>6} {'M':>6} {'of':<7} {'CPU s':>6} {'M/s':>6} {'wall s':>7} {'peak MiB':>9}")
    for ranks in sys.argv[3:] or ["8", "32"]:
        with tempfile.TemporaryDirectory(prefix="tscope-exports-") as folder:
            traces, out = os.path.join(folder, "traces"), os.path.join(folder, "out")
            subprocess.run([tracegen, "--ranks", ranks, "--events", str(EVENTS), "--kernels", "12", traces],
                           check=True, stdout=subprocess.DEVNULL)

            def row(what, count, of, wall, cpu, peak=None):
                size = os.path.getsize(out if os.path.exists(out) else out + ".gz") / 2**20
                print(f"{ranks:>5} {what:<14} {size:6.0f} {count / 1e6:6.2f} {of:<7} {cpu:6.2f}"
                      f" {count / 1e6 / cpu:6.2f} {wall:7.2f} {peak or 0:9.0f}", flush=True)

            timeline = [report, "--format", "perfetto", "--limit", "20G", "--ranks", "0-99999", "--steps", "0:"]
            took = min(cost([*timeline, "--output", out, traces]) for _ in range(3))
            count, size = packets(out), os.path.getsize(out)
            row("perfetto", count, "events", *took)
            cpu = write_bytes(out, size)
            row("  floor", count, "events", cpu, cpu)
            os.remove(out)
            row("perfetto, gzip", count, "events", *cost([*timeline, "--output", out + ".gz", traces]))
            os.remove(out + ".gz")

            took = min(cost([report, "--format", "sqlite", "--limit", "20G", "--output", out, traces]) for _ in range(3))
            contents = tables(out)
            count = sum(len(rows) for _, _, rows in contents)
            row("sqlite", count, "rows", *took)
            os.remove(out)
            cpu = write_rows(out, contents)
            row("  floor", count, "rows", cpu, cpu)


if __name__ == "__main__":
    main()
