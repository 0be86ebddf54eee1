# SPDX-License-Identifier: MIT
"""Replays a run with other durations. The rules of the simulator are applied to the launched work:

  start of an operation   max(launch + launch latency, end of the stream's previous operation + gap,
                          ends of the operations it waits for)
  end                     start + duration; of a collective: last arrival + transfer
  the host                keeps the time between its own calls; a sync ends when it began or when
                          the operations it waits for end, whichever is later, plus the wake-up time

A replay without changes must give exactly the logged times; check() makes sure of it.
"""
from statistics import median


class Replay:
    def __init__(self, truth):
        self.truth = truth
        self.events = {rank.number: self.host_events(rank) for rank in truth.ranks}
        self.delays = self.find_delays()
        self.of_peers = self.peer_durations()
        self.edited = {}  # durations of kernels, by (rank, id)
        self.pause_changes = self.peer_pauses()
        self.check()

    @staticmethod
    def host_events(rank):
        """The host's launches and syncs, in order."""
        events = [(op.launched, op.id, op) for op in rank.order]
        events += [(sync["from"], 0, sync) for sync in rank.syncs]
        events.sort(key=lambda event: event[:2])
        return [event[2] for event in events]

    def find_delays(self):
        """For each operation: the time from the last end or launch that it needed to its start."""
        delays = {}
        for rank in self.truth.ranks:
            for op in rank.order:
                ready = op.launched
                for id in [op.previous] + op.after:
                    if id in rank.ops:
                        ready = max(ready, rank.ops[id].end)
                delays[rank.number, op.id] = op.start - ready
        return delays

    def peer_durations(self, group=()):
        """For each kernel: the median duration of the other ranks' n-th kernel of the same name; for those of a group, of
        the ranks outside it. All ranks run the same kernels in the same order."""
        by_key = {}
        for rank in self.truth.ranks:
            count = {}
            for op in rank.order:
                if op.kind == "kernel":
                    n = count[op.name] = count.get(op.name, -1) + 1
                    by_key.setdefault((op.name, n), {})[rank.number] = op
        usual = {}
        for ops in by_key.values():
            for number, op in ops.items():
                others = [other.end - other.start for key, other in ops.items() if key not in (number, *group)]
                if others:
                    usual[number, op.id] = median(others)
        return usual

    @staticmethod
    def pauses(events):
        """The host's own time between a launch and the one before, by the index of the launch in the host's
        events. Time in a sync does not count. Ranks may have different syncs, but have the same
        launches."""
        before, own, ended = {}, 0, None
        for index, event in enumerate(events):
            is_sync = isinstance(event, dict)
            own += (event["from"] if is_sync else event.launched) - ended if index else 0
            ended = event["to"] if is_sync else event.launched
            if not is_sync:
                before[index], own = own, 0
        return before

    def peer_pauses(self):
        """By rank and index: the median of the other ranks with as many launches, minus the rank's own."""
        pauses = {number: self.pauses(events) for number, events in self.events.items()}
        usual = {}
        for number, own in pauses.items():
            others = [other.values() for key, other in pauses.items()
                      if key != number and len(other) == len(own)]
            usual[number] = {index: int(median(of_launch)) - before for (index, before), *of_launch
                             in zip(own.items(), *others)} if others else {}
        return usual

    def run_group(self, group):
        """Several ranks compute as fast as all others, where these are faster."""
        usual, ranks = self.peer_durations(group), {rank.number: rank for rank in self.truth.ranks}
        self.edited = {(number, id): min(usual[number, id], ranks[number].ops[id].end - ranks[number].ops[id].start)
                       for number, id in usual if number in group}
        ends = self.run()
        self.edited = {}
        return ends

    def run(self, transfer=None, as_peers=None):
        """The end of every operation, by (rank, id). `transfer` replaces the transfer time of every
        collective. Rank `as_peers` gets the durations of its peers for its kernels and for its host
        between calls."""
        ends, arrivals = {}, {}
        hosts = {number: Host(events) for number, events in self.events.items()}
        changed = True
        while changed:
            changed = False
            for rank in self.truth.ranks:
                changed |= self.advance(rank, hosts[rank.number], ends, arrivals, transfer, as_peers)
        unfinished = [number for number, host in hosts.items() if host.at < len(host.events)]
        assert not unfinished, f"ranks {unfinished} never went on"
        return ends

    def advance(self, rank, host, ends, arrivals, transfer, as_peers):
        changed = self.settle(rank, host, ends, arrivals, transfer, as_peers)
        while host.at < len(host.events):
            event = host.events[host.at]
            if as_peers == rank.number and host.paused < host.at:
                host.paused = host.at
                host.shift += self.pause_changes[rank.number].get(host.at, 0)
            if isinstance(event, dict):
                if not host.sync(event, rank, ends):
                    break
            else:
                host.launch(event)
            host.at += 1
            changed = True
            self.settle(rank, host, ends, arrivals, transfer, as_peers)
        return changed

    def settle(self, rank, host, ends, arrivals, transfer, as_peers):
        changed = False
        waiting = []
        for op in host.launched:
            end = self.end_of(rank, host, op, ends, arrivals, transfer, as_peers)
            if end is None:
                waiting.append(op)
            else:
                ends[rank.number, op.id] = end
                changed = True
        host.launched = waiting
        return changed

    def end_of(self, rank, host, op, ends, arrivals, transfer, as_peers):
        """The end of an operation; None while an end that it needs is not known."""
        ready = host.launch_times[op.id]
        for id in [op.previous] + op.after:
            if id in rank.ops:
                if (rank.number, id) not in ends:
                    return None
                ready = max(ready, ends[rank.number, id])
        start = ready + self.delays[rank.number, op.id]
        if not op.meetings:
            duration = self.edited.get((rank.number, op.id), op.end - op.start)
            if as_peers == rank.number:
                duration = self.of_peers.get((rank.number, op.id), duration)
            return start + duration
        return self.comm_end(op, start, arrivals, transfer)

    @staticmethod
    def comm_end(op, start, arrivals, transfer):
        """The collectives of a kernel run one after the other; its messages all arrive at its start. Keeps
        the arrivals, so that they are not computed again in the turn of each rank."""
        at, end, known = start, start, True
        for meeting, call in zip(op.meetings, op.calls):
            message = call["call"] in ("send", "recv")
            if not known and not message:
                return None
            here = arrivals.setdefault(id(meeting), {})
            here[op.rank, call["call"]] = start if message else at
            if len(here) < len(meeting.members):
                known = False
                continue
            finished = max(here.values()) + (meeting.transfer if transfer is None else transfer)
            at = at if message else finished
            end = max(end, finished)
        return end if known else None

    def step(self, ends, first, last):
        """The mean length of the steps [first, last) over ranks; a step ends with its last kernel."""
        total = 0
        for rank in self.truth.ranks:
            kernels = {op.end: op.id for op in rank.order if op.kind == "kernel"}
            finish = ends[rank.number, kernels[rank.steps[last - 1][1]]]
            begin = kernels.get(rank.steps[first][0])
            start = ends[rank.number, begin] if begin else rank.steps[first][0]
            total += finish - start
        return total / len(self.truth.ranks) / (last - first)

    def check(self):
        ends = self.run()
        for rank in self.truth.ranks:
            for op in rank.order:
                assert abs(ends[rank.number, op.id] - op.end) <= 1, (
                    f"rank {rank.number} op {op.id} ({op.kind}) ended at {op.end}, "
                    f"replayed {ends[rank.number, op.id]}")


class Host:
    """The state of one rank's host during a replay; `shift` is how much later than in the log it is."""

    def __init__(self, events):
        self.events = events
        self.at = 0
        self.paused = 0  # index of the last call whose pause was changed
        self.shift = 0
        self.launched = []
        self.launch_times = {}

    def launch(self, op):
        self.launch_times[op.id] = op.launched + self.shift
        self.launched.append(op)

    def sync(self, sync, rank, ends):
        """Ends a sync; False while an operation that it waits for has no end."""
        keys = [(rank.number, id) for id in sync["sync"]]
        if any(key not in ends for key in keys):
            return False
        was = max(rank.ops[id].end for _, id in keys)
        now = max(ends[key] for key in keys)
        woke = sync["to"] - max(sync["from"], was)
        self.shift = max(sync["from"] + self.shift, now) + woke - sync["to"]
        return True
