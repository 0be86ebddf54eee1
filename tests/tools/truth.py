#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The truth of a run on the stand-in cluster, computed from the simulator's own op logs.

    truth.py DIRECTORY            writes DIRECTORY/truth.json

Definitions, per rank and step, all in nanoseconds of the simulator's clock:

  compute   union of the kernels that do not communicate
  comm      union of the kernels in which ranks meet, and of those of the same libraries that prepare
            on one GPU what is moved, and of copies between GPUs
  exposed   comm without compute, by interval union. If several collectives run at the same time,
            each instant belongs to the one that started first. It is wait before the arrival of the
            last rank at that collective, and transfer after
  step      on a rank, from the end of the previous step's last kernel to the end of its own last kernel
  path      from the last end of the run backwards, always to the predecessor that finished last; at a
            collective to the rank that arrived last
  what-if   the run replayed with other durations (see replay.py)
"""
import functools
import json
import os
import re
import sys

from replay import Replay


def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def subtract(left, right):
    """left without right; both are unions."""
    result, i = [], 0
    for start, end in left:
        while i < len(right) and right[i][1] <= start:
            i += 1
        k = i
        while k < len(right) and right[k][0] < end:
            if right[k][0] > start:
                result.append([start, right[k][0]])
            start = max(start, right[k][1])
            k += 1
        if start < end:
            result.append([start, end])
    return result


def within(intervals, begin, end):
    return [[max(start, begin), min(stop, end)] for start, stop in intervals
            if stop > begin and start < end]


class Op:
    """One operation of a stream, and the operations that it waited for."""

    def __init__(self, rank, entry):
        self.rank = rank
        self.id = entry["op"]
        self.kind = entry["kind"]
        self.stream = entry["stream"]
        self.launched, self.start, self.end = entry["launched"], entry["start"], entry["end"]
        self.previous, self.after = entry["previous"], entry["after"]
        self.name = entry.get("name", "")
        self.bytes = entry.get("bytes", 0)
        self.comm = entry.get("comm")
        self.calls = entry.get("calls", [])
        self.meetings = []  # of a collective, one for each call

        self.prepares = entry.get("peer", False) or "layout" in self.name or "PrepareDispatch" in self.name

    @property
    def is_comm(self):
        return self.kind == "collective" or self.prepares

    @property
    def computes(self):
        return self.kind == "kernel" and not self.prepares


class Meeting:
    """One collective or one message, with (op, call) for each of its ranks."""

    def __init__(self):
        self.members = []

    @property
    def last_arrival(self):
        return max(call["arrival"] for _, call in self.members)

    def last(self, rank):
        """The op of the rank that arrived last; `rank` itself if no other arrived later."""
        return max(self.members,
                   key=lambda member: (member[1]["arrival"], member[0].rank == rank))[0]

    @property
    def transfer(self):
        return self.members[0][1]["end"] - self.last_arrival


class Rank:
    def __init__(self, number, path):
        self.number = number
        self.ops, self.syncs, self.marks, self.host = {}, [], [], []
        with open(path) as lines:
            for line in lines:
                entry = json.loads(line)
                if "op" in entry:
                    self.ops[entry["op"]] = Op(number, entry)
                elif "sync" in entry:
                    self.syncs.append(entry)
                else:
                    self.marks.append(entry)
        self.order = sorted(self.ops.values(), key=lambda op: op.id)
        self.steps = self.find_steps()

    def find_steps(self):
        """Begin and end of each step on the GPU. A step ends with its last kernel, which is launched
        between the step's mark and the next."""
        marks = [mark["at"] for mark in self.marks if mark["mark"] in ("step", "end")]
        kernels = [op for op in self.order if op.kind == "kernel"]
        ends = []
        for begin, end in zip(marks, marks[1:]):
            ends.append(max((op.end for op in kernels if begin <= op.launched < end), default=None))
        first = min((op.start for op in kernels), default=None)
        return list(zip([first] + ends[:-1], ends))

    def begin_at_mark(self):
        """Lets the first step begin at its mark, because it does not wait for another step. Its input is
        copied before its first kernel, on a busy machine milliseconds before."""
        first = next(mark["at"] for mark in self.marks if mark["mark"] == "step")
        self.steps[0] = (first, self.steps[0][1])

    def host_ends(self):
        """For each step, the time of its last launch."""
        marks = [mark["at"] for mark in self.marks if mark["mark"] in ("step", "end")]
        return [max(op.launched for op in self.order if begin <= op.launched < end)
                for begin, end in zip(marks, marks[1:])]


class Truth:
    def __init__(self, directory):
        self.ranks = []
        for name in sorted(os.listdir(directory)):
            match = re.fullmatch(r"rank(\d+)\.jsonl", name)
            if match:
                self.ranks.append(Rank(int(match[1]), os.path.join(directory, name)))
        self.ranks.sort(key=lambda rank: rank.number)
        self.meetings = self.find_meetings()
        self.n_steps = min(len(rank.steps) for rank in self.ranks)

    def find_meetings(self):
        """Matches the calls of all ranks: collectives by (communicator, sequence), messages also by pair."""
        met = {}
        for rank in self.ranks:
            for op in rank.order:
                for call in op.calls:
                    key = [op.comm, call["sequence"]]
                    if call["call"] == "send":
                        key += [call["rank"], call["peer"]]
                    elif call["call"] == "recv":
                        key += [call["peer"], call["rank"]]
                    meeting = met.setdefault(tuple(key), Meeting())
                    meeting.members.append((op, call))
                    op.meetings.append(meeting)
        return list(met.values())

    @staticmethod
    @functools.cache
    def unions(rank):
        """The intervals of compute and comm, and of exposed comm and copies, in the whole run of a rank."""
        compute = union([op.start, op.end] for op in rank.order if op.computes)
        copies = union([op.start, op.end] for op in rank.order if op.kind in ("copy", "fill") and not op.prepares)
        comm = union([op.start, op.end] for op in rank.order if op.is_comm)
        wait, transfer, covered = [], [], 0
        for op in sorted((op for op in rank.order if op.is_comm), key=lambda op: op.start):
            start = max(op.start, covered)
            split = max((meeting.last_arrival for meeting in op.meetings), default=op.start)
            if start < op.end:
                wait.append([start, max(start, min(split, op.end))])
                transfer.append([max(start, min(split, op.end)), op.end])
                covered = op.end
        return {
            "compute": compute,
            "comm": comm,
            "exposed": subtract(comm, compute),
            "exposed_wait": subtract(union(wait), compute),
            "exposed_transfer": subtract(union(transfer), compute),
            "exposed_memcpy": subtract(subtract(copies, compute), comm),
        }

    def overlap(self, rank, begin, end):
        """The time of each of these within a window."""
        return {"wall": end - begin,
                **{name: length(within(intervals, begin, end))
                   for name, intervals in self.unions(rank).items()}}

    def predecessor(self, rank, op):
        """(op or "host", time): the last end or launch that op had to wait for."""
        best = ("host", op.launched)
        for other_id in [op.previous] + op.after:
            other = rank.ops.get(other_id)
            if other and other.end > best[1]:
                best = (other, other.end)
        return best

    def path(self, begin, end):
        """The critical path between two instants: its time by category and by rank."""
        by_category = dict.fromkeys(("compute", "communication", "copy", "launch", "host"), 0)
        by_rank = {rank.number: 0 for rank in self.ranks}
        now = end
        ranks = {rank.number: rank for rank in self.ranks}

        def account(until, category, number):
            nonlocal now
            until = max(until, begin)
            if until < now:
                by_category[category] += now - until
                by_rank[number] += now - until
                now = until

        op = max((op for rank in self.ranks for op in rank.order if op.end <= end),
                 key=lambda op: op.end)
        while now > begin:
            rank = ranks[op.rank]
            account(op.end, "launch", op.rank)
            if op.meetings:
                # the call that ended last, then backwards through the earlier calls of the same kernel
                meeting = max(op.meetings, key=lambda met: met.members[0][1]["end"])
                while True:
                    account(meeting.last_arrival, "communication", op.rank)
                    op = meeting.last(op.rank)
                    rank = ranks[op.rank]
                    before = [met for met in op.meetings
                              if met is not meeting and met.members[0][1]["end"] ==
                              meeting.last_arrival]
                    if not before:
                        break
                    meeting = before[0]
            elif op.kind in ("kernel", "copy", "fill"):
                account(op.start, "compute" if op.computes else
                        "communication" if op.prepares else "copy", op.rank)
            what, when = self.predecessor(rank, op)
            account(when, "launch", op.rank)
            if what == "host":
                op = self.walk_host(rank, when, account)
                if op is None:
                    break
            else:
                op = what
        return {"by_category": by_category, "by_rank": by_rank, "wall": end - now}

    @staticmethod
    def walk_host(rank, launched, account):
        """Goes back on the host to the last sync in which it waited, and to the operation that ended the wait."""
        held = [sync for sync in rank.syncs if sync["to"] <= launched]
        while held:
            sync = held.pop()
            released = max((rank.ops[id] for id in sync["sync"]), key=lambda op: op.end)
            if released.end >= sync["from"]:
                account(sync["to"], "host", rank.number)
                account(released.end, "launch", rank.number)
                return released
        account(0, "host", rank.number)
        return None

    def steady(self, first, last):
        """Means per step and rank over the steps [first, last)."""
        n = last - first
        per_rank = []
        for rank in self.ranks:
            begin, end = rank.steps[first][0], rank.steps[last - 1][1]
            sums = self.overlap(rank, begin, end)
            per_rank.append({"rank": rank.number, **{key: value / n for key, value in sums.items()}})
        begin = max(rank.steps[first][0] for rank in self.ranks)
        end = max(rank.steps[last - 1][1] for rank in self.ranks)
        path = self.path(begin, end)
        mean = lambda key: sum(rank[key] for rank in per_rank) / len(per_rank)
        return {
            "steps": n,
            "step": mean("wall"),
            **{key: mean(key) for key in ("compute", "comm", "exposed", "exposed_wait",
                                          "exposed_transfer", "exposed_memcpy")},
            "ranks": per_rank,
            "path": {"step": path["wall"] / n,
                     "by_category": {key: value / n for key, value in path["by_category"].items()},
                     "by_rank": {key: value / n for key, value in path["by_rank"].items()}},
        }

    def host_ahead(self, first, last):
        """How far the hosts are ahead of the GPUs: for each step, the mean over ranks of the time from its
        last launch to its end; the longest such time; and the largest number of later steps that were
        launched before a step ended."""
        means, longest, most = [], 0, 0
        hosts = [rank.host_ends() for rank in self.ranks]
        for step in range(first, last):
            ahead = [rank.steps[step][1] - host[step] for rank, host in zip(self.ranks, hosts)]
            means.append(sum(ahead) / len(ahead))
            longest = max(longest, *ahead)
            most = max(most, *(sum(at < rank.steps[step][1] for at in host[step + 1:])
                               for rank, host in zip(self.ranks, hosts)))
        return means, longest, most

    def what_if(self, first, last, groups=()):
        """Mean step times in what-if replays."""
        replay = Replay(self)
        step = lambda times: replay.step(times, first, last)
        result = {"unchanged": step(replay.run()), "communication": step(replay.run(transfer=0)),
                  "ranks": {}}
        for rank in self.ranks:
            result["ranks"][rank.number] = step(replay.run(as_peers=rank.number))
        result["groups"] = [step(replay.run_group(group)) for group in groups]
        return result

    def document(self):
        return {
            "ranks": len(self.ranks),
            "steps": self.n_steps,
            "per_rank": [
                {"rank": rank.number,
                 "steps": [{"begin": begin, "end": end, **self.overlap(rank, begin, end)}
                           for begin, end in rank.steps]}
                for rank in self.ranks],
            "collectives": [
                {"comm": met.members[0][0].comm, "call": met.members[0][1]["call"],
                 "sequence": met.members[0][1]["sequence"], "bytes": met.members[0][1]["bytes"],
                 "last_start": met.last_arrival, "end": met.members[0][1]["end"],
                 "transfer": met.transfer,
                 "ranks": [{"rank": op.rank, "start": call["arrival"],
                            "wait": met.last_arrival - call["arrival"]}
                           for op, call in met.members]}
                for met in self.meetings],
            "path": [self.path(max(rank.steps[s][0] for rank in self.ranks),
                               max(rank.steps[s][1] for rank in self.ranks))
                     for s in range(self.n_steps)],
            "what_if": self.what_if(0, self.n_steps),
        }


def main():
    directory = sys.argv[1]
    with open(os.path.join(directory, "truth.json"), "w") as out:
        json.dump(Truth(directory).document(), out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
