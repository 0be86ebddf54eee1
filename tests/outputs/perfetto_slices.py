# SPDX-License-Identifier: MIT
"""Perfetto's traces, read with Perfetto's own protobuf classes. A test that imports this is skipped where they are not
there."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from outcomes import Skip  # noqa: E402

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError as why:
    raise Skip(f"the package perfetto is not there ({why}): scripts/setup test") from None

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2


class Slice:
    def __init__(self, begin, name, category, notes, event):
        self.begin, self.name, self.category, self.notes = begin, name, category, notes
        self.flows, self.flow_ends = list(event.flow_ids), list(event.terminating_flow_ids)
        self.end = None


class Trace:
    """A trace as a reader of the format has to read it: tracks with their slices and values. Anything that the format
    forbids is an error here."""

    def __init__(self, data):
        whole = perfetto.Trace()
        whole.ParseFromString(data)
        self.tracks, self.slices, self.values = {}, collections.defaultdict(list), collections.defaultdict(list)
        interned = collections.defaultdict(dict)  # (sequence, kind) -> iid -> text
        cleared = set()
        open_slices = collections.defaultdict(list)
        for packet in whole.packet:
            sequence = packet.trusted_packet_sequence_id
            assert sequence, "a packet without a sequence"
            if packet.sequence_flags & CLEARED:
                assert sequence not in cleared, "a sequence that begins twice"
                cleared.add(sequence)
            if packet.HasField("interned_data"):
                for kind, entries in (("category", packet.interned_data.event_categories),
                                      ("name", packet.interned_data.event_names),
                                      ("note", packet.interned_data.debug_annotation_names),
                                      ("text", packet.interned_data.debug_annotation_string_values)):
                    for entry in entries:
                        text = entry.str.decode() if kind == "text" else entry.name
                        assert entry.iid not in interned[sequence, kind], "a number given twice"
                        interned[sequence, kind][entry.iid] = text
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                if track.HasField("uuid") and not track.uuid:
                    self.root = track
                    continue
                assert track.uuid and track.uuid not in self.tracks
                assert not track.parent_uuid or track.parent_uuid in self.tracks
                self.tracks[track.uuid] = track
            if packet.HasField("track_event"):
                assert sequence in cleared and packet.sequence_flags & NEEDS_STATE
                self.take(packet.timestamp, packet.track_event, interned, sequence, open_slices)
        assert not any(open_slices.values()), "slices that never end"

    def take(self, time, event, interned, sequence, open_slices):
        track = event.track_uuid
        assert track in self.tracks
        if event.type == COUNTER:
            assert self.tracks[track].HasField("counter")
            assert not self.values[track] or self.values[track][-1][0] < time
            self.values[track].append((time, event.counter_value))
        elif event.type == BEGIN:
            name = event.name or interned[sequence, "name"][event.name_iid]
            category = "".join(event.categories) or "".join(
                interned[sequence, "category"][iid] for iid in event.category_iids)
            notes = {}
            for note in event.debug_annotations:
                kind = note.WhichOneof("value")
                notes[interned[sequence, "note"][note.name_iid]] = (
                    interned[sequence, "text"][note.string_value_iid] if kind == "string_value_iid"
                    else getattr(note, kind))
            slice = Slice(time, name, category, notes, event)
            stack = open_slices[track]
            assert not stack or stack[-1].begin <= time
            assert not self.slices[track] or self.slices[track][-1].begin <= time
            stack.append(slice)
            self.slices[track].append(slice)
        else:
            assert event.type == END
            slice = open_slices[track].pop()
            assert slice.begin <= time
            slice.end = time

    def processes(self):
        return [track for track in self.tracks.values() if track.HasField("process")]

    def of_process(self, process, prefix):
        """The slices on the tracks of one kind of a process, by time."""
        found = [slice for uuid, track in self.tracks.items()
                 if track.parent_uuid == process.uuid and track.name.startswith(prefix)
                 for slice in self.slices[uuid]]
        return sorted(found, key=lambda slice: slice.begin)

    def top(self, name):
        return [slice for uuid, track in self.tracks.items()
                if not track.parent_uuid and track.name.endswith(name) for slice in self.slices[uuid]]

    def counters(self, process):
        return {track.name: self.values[uuid] for uuid, track in self.tracks.items()
                if track.parent_uuid == process.uuid and track.HasField("counter")}
