# SPDX-License-Identifier: MIT
"""Jobs that fail in a known way, and the flight-recorder dumps that they would write.

A job is a program for each rank: collectives and messages of its groups, in order. Each rank calls ahead of its device.
The device takes one call at a time, and a collective finishes when it is at the head of every member's queue. The
effect of each fault is coded here, so the faulty rank is known without the dumps."""
import json
import os
import pickle


class Op:
    def __init__(self, kind, group, ranks, size=1024, dtype="Float", peer=None, batch=None, root=None,
                 thread=None):
        self.thread = thread
        self.kind, self.group, self.ranks = kind, group, tuple(ranks)
        self.size, self.dtype, self.peer, self.batch, self.root = size, dtype, peer, batch, root

    def message(self):
        return self.kind in ("send", "recv")

    def key(self, seq):
        return (self.group, self.ranks, seq)


def sizes_of(op):
    n = len(op.ranks)
    if op.kind in ("_all_gather_base", "all_gather_into_tensor_coalesced"):
        return [[op.size]], [[op.size * n]]
    if op.kind in ("_reduce_scatter_base", "reduce_scatter_tensor_coalesced"):
        return [[op.size * n]], [[op.size]]
    if isinstance(op.size, tuple):
        return [list(op.size[:1])], [list(op.size[1:])]
    return [[op.size]], [[op.size]]


class FailingJob:
    def __init__(self, world, ahead=4):
        self.world, self.ahead = world, ahead
        self.programs = {r: [] for r in range(world)}
        self.stops = {}      # rank: its host stops before this place in its program
        self.broken = {}     # rank: its device finishes nothing from this place on, but its peers do
        self.groups = {}
        self.desc = {}

    def group(self, name, ranks, desc="undefined"):
        self.groups.setdefault((name, tuple(ranks)), desc)
        return name, tuple(ranks)

    def all(self, kind, group, **more):
        for r in group[1]:
            self.programs[r].append(Op(kind, group[0], group[1], **more))

    def one(self, rank, kind, group, **more):
        self.programs[rank].append(Op(kind, group[0], group[1], **more))

    def run(self):
        """Runs until nothing moves. Returns the calls of each rank, and which of them are done."""
        calls = {r: [] for r in range(self.world)}
        counts = {}
        for r in range(self.world):
            for op in self.programs[r]:
                where = (r, op.group, op.ranks, op.message())
                same_batch = op.batch is not None and calls[r] and calls[r][-1][0].batch == op.batch
                seq = counts.get(where, 0)
                counts[where] = seq if same_batch else seq + 1
                calls[r].append((op, counts[where]))
        head = {r: 0 for r in range(self.world)}
        sent, done = {}, {r: 0 for r in range(self.world)}

        def called(r):
            return min(len(calls[r]), head[r] + self.ahead, self.stops.get(r, 1 << 60))

        def at_head(r, op, seq):
            # a rank with a broken device has done its part of the calls it made
            reach = called(r) if r in self.broken and head[r] >= self.broken[r] else head[r] + 1
            for other, s in calls[r][head[r]:min(reach, called(r))]:
                if other.key(s) == op.key(seq) and not other.message():
                    return other.kind == op.kind and sizes_fit(other, op)
            for other, s in calls[r][:head[r]]:
                if other.key(s) == op.key(seq) and not other.message():
                    return True
            return False

        def sizes_fit(a, b):
            return isinstance(a.size, tuple) or (a.size == b.size and a.dtype == b.dtype)

        def mate(r, op):
            peer = op.ranks[op.peer]
            ahead = calls[peer][head[peer]:called(peer)]
            if not ahead:
                return False
            if op.batch is None:
                ahead = ahead[:1]
            else:
                first = ahead[0][0].batch
                ahead = [c for c in ahead if c[0].batch == first]
            want = "recv" if op.kind == "send" else "send"
            mine = op.ranks.index(r)
            return any(o.kind == want and o.group == op.group and o.peer == mine and o.size == op.size
                       for o, _ in ahead)

        moved = True
        while moved:
            moved = False
            ready = []
            for r in range(self.world):
                if head[r] >= called(r) or head[r] >= self.broken.get(r, 1 << 60):
                    continue
                op, seq = calls[r][head[r]]
                if op.message():
                    if op.batch is not None:
                        batch = [c for c in calls[r][head[r]:called(r)] if c[0].batch == op.batch]
                        if all(mate(r, o) for o, _ in batch):
                            ready.append((r, len(batch)))
                    elif mate(r, op):
                        ready.append((r, 1))
                elif all(at_head(m, op, seq) for m in op.ranks):
                    ready.append((r, 1))
            for r, n in ready:
                head[r] += n
                moved = True
        del sent, done
        return {r: [(op, seq, i < head[r]) for i, (op, seq) in enumerate(calls[r][:called(r)])]
                for r in range(self.world)}

    def dumps(self, version="2.9", ring=2000, only_pending=False, status=True, timing=False,
              frames=False, library="nccl"):
        ran = self.run()
        names = sorted({name for name, _ in self.groups}, key=lambda n: (len(n), n))
        out = {}
        for r in range(self.world):
            mine = [(k, d) for k, d in self.groups.items() if r in k[1]]
            entries, progress = [], {}
            order = 0
            batch_open = None
            for i, (op, seq, finished) in enumerate(ran[r]):
                pg = names.index(op.group)
                batch_open = op.batch
                entries.append(self._entry(r, order, pg, op, seq, finished, i, timing, frames, library,
                                           inside=op.batch is not None))
                order += 1
                following = ran[r][i + 1][0].batch if i + 1 < len(ran[r]) else None
                if op.batch is not None and following != op.batch:
                    close = dict(entries[-1])
                    close.update(record_id=order, profiling_name=f"{library}:coalesced", input_sizes=[],
                                 output_sizes=[], input_dtypes=[], output_dtypes=[],
                                 state="completed" if finished else "scheduled", retired=finished)
                    entries.append(close)
                    order += 1
                at = progress.setdefault(str(pg), {"last_enqueued_collective": -1,
                                                   "last_started_collective": -1,
                                                   "last_completed_collective": -1})
                at["last_enqueued_collective"] = seq
                if finished:
                    at["last_completed_collective"] = seq
            del batch_open
            entries = entries[-ring:]
            if only_pending:
                entries = [e for e in entries if e["state"] != "completed"]
            dump = {"version": version,
                    "pg_config": {name: {"name": name, "desc": d, "ranks": str(list(ranks))}
                                  for (name, ranks), d in mine},
                    "nccl_version": "2.27.3",
                    "pg_status": progress if status else {},
                    "entries": entries}
            minor = int(version.split(".")[1])
            if minor < 3:
                del dump["pg_status"]
            if minor < 2:
                del dump["nccl_version"]
            out[r] = dump
        return out

    @staticmethod
    def _entry(r, order, pg, op, seq, finished, place, timing, frames, library, inside):
        ins, outs = sizes_of(op)
        me = op.ranks.index(r)
        name = (f"send {me}->{op.peer}" if op.kind == "send" else
                f"recv {me}<-{op.peer}" if op.kind == "recv" else op.kind)
        desc = "undefined"
        base = 1758610505592849034 + place * 1_000_000 + r
        state = "completed" if finished and not inside and library != "gloo" else "scheduled"
        entry = {"record_id": order, "pg_id": pg, "process_group": (op.group, desc),
                 "collective_seq_id": 0 if op.message() else seq,
                 "p2p_seq_id": seq if op.message() else 0, "op_id": order,
                 "profiling_name": f"{library}:{name}", "time_created_ns": base,
                 "input_sizes": ins, "input_dtypes": [op.dtype], "output_sizes": outs,
                 "output_dtypes": [op.dtype], "state": state,
                 "time_discovered_started_ns": base + 1000 if timing and finished else None,
                 "time_discovered_completed_ns": base + 2000 if state == "completed" else None,
                 "retired": finished and not inside, "timeout_ms": 600000, "is_p2p": op.message()}
        if op.thread is not None:
            entry["thread_name"], entry["thread_id"] = op.thread, str(23456244340032 + 8192 * len(op.thread) + r)
        if frames:
            entry["frames"] = [{"name": "step", "filename": "train.py", "line": 100 + place % 7},
                               {"name": "main", "filename": "train.py", "line": 12}]
        return entry


def write(dumps, folder, name="trace_{rank}", form="pickle", protocol=2, ranks=None):
    os.makedirs(folder, exist_ok=True)
    for r, dump in dumps.items():
        if ranks is not None and r not in ranks:
            continue
        path = os.path.join(folder, name.format(rank=r))
        if form == "json":
            with open(path, "w", encoding="utf-8") as file:
                json.dump(dump, file)
        else:
            with open(path, "wb") as file:
                pickle.dump(dump, file, protocol)
