#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TensorBoard's event files as an input: tensorboard_events.py TSCOPE-REPORT. The files are written by the tensorboard
package, and by PyTorch's SummaryWriter where it is there; the truth is what was given to them."""
import glob
import importlib.util
import json
import math
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from findings import ids_of  # noqa: E402
from in_folder import InFolder  # noqa: E402
from observed import run  # noqa: E402
from outcomes import Skip  # noqa: E402

REPORT = sys.argv[1]
LOSSES = [2.0 / (step + 1) for step in range(40)]
HEADER, FOOTER = 12, 4  # of a record: length and its checksum; checksum of the bytes


def write_events(folder, tag, values, tensor=None):
    """One Event for each value; as a tensor of this type where one is named, as TensorFlow 2 does."""
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    writer = EventFileWriter(folder)
    for step, value in enumerate(values):
        if tensor == "content":
            kind = {"tensor": tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, tensor_content=struct.pack("<f", value))}
        elif tensor == "double":
            kind = {"tensor": tensor_pb2.TensorProto(dtype=types_pb2.DT_DOUBLE, double_val=[value])}
        elif tensor == "float":
            kind = {"tensor": tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, float_val=[value])}
        else:
            kind = {"simple_value": value}
        many = tensor_pb2.TensorProto(dtype=types_pb2.DT_FLOAT, float_val=[1, 2, 3])  # a histogram: no scalar
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="loss/layers", tensor=many),
                                             summary_pb2.Summary.Value(tag=tag, **kind)])
        writer.add_event(event_pb2.Event(wall_time=1e9 + step, step=step, summary=summary))
    writer.close()
    (path,) = glob.glob(os.path.join(folder, "*tfevents*"))
    return path


def records(data):
    """Where each record begins."""
    at = 0
    while at < len(data):
        yield at
        at += HEADER + struct.unpack_from("<Q", data, at)[0] + FOOTER


def report(*paths):
    out = run(REPORT, "--format", "json", *paths, ok=None, timeout=60)
    return out.returncode, json.loads(out.stdout) if out.stdout else None, out.stderr


@unittest.skipUnless(importlib.util.find_spec("tensorboard"), "tensorboard is not installed")
class Events(InFolder):
    def series(self, name, *paths):
        status, result, said = report(*paths)
        self.assertEqual(status, 0, said)
        return {one["name"]: one for one in result["convergence"]["series"]}[name], result

    def assert_values(self, series, values, first=0):
        self.assertEqual(series["step"], list(range(first, first + len(values))))
        for got, wanted in zip(series["value"], values):
            self.assertAlmostEqual(got, wanted, delta=abs(wanted) * 1e-4)  # five digits are shown

    def test_each_way_to_write_a_scalar(self):
        for tensor in (None, "content", "double", "float"):
            with self.subTest(tensor=tensor):
                folder = os.path.join(self.folder, str(tensor))
                write_events(folder, "train/loss", LOSSES, tensor)
                series, result = self.series("train/loss", folder)
                self.assert_values(series, LOSSES)
                self.assertEqual((series["role"], result["convergence"]["verdict"]), ("loss", "falling"))
                self.assertEqual([one["name"] for one in result["convergence"]["series"]], ["train/loss"])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_what_pytorch_writes(self):
        from torch.utils.tensorboard import SummaryWriter
        with SummaryWriter(os.path.join(self.folder, "runs", "today")) as writer:
            for step, loss in enumerate(LOSSES):
                writer.add_scalar("Loss/train", loss, step)
                writer.add_scalar("lr", 1e-3, step, new_style=True)
                writer.add_scalar("grad_norm", loss * 3, step, new_style=True, double_precision=True)
                writer.add_text("loss", "not a number", step)
        for name, values in {"Loss/train": LOSSES, "lr": [1e-3] * 40, "grad_norm": [3 * one for one in LOSSES]}.items():
            self.assert_values(self.series(name, self.folder)[0], values)  # found in a folder of the folder

    def test_a_loss_that_is_no_number_is_told(self):
        write_events(self.folder, "loss", LOSSES[:20] + [math.nan] * 5)
        series, result = self.series("loss", self.folder)
        self.assertEqual((series["not_finite"], series["first_not_finite_step"]), (5, 20))
        self.assertIn("CONVERGENCE.DIVERGED", ids_of(result))

    def damaged(self, data, says, values, first=0):
        path = os.path.join(self.folder, "events.out.tfevents.1.damaged")
        with open(path, "wb") as file:
            file.write(data)
        status, result, said = report(path)
        if not values:
            self.assertNotEqual(status, 0)
            self.assertIn(says, said)
            return
        self.assertEqual(status, 0, said)
        self.assertTrue([note for note in result["quality"]["notes"] if "damaged" in note and says in note],
                        result["quality"]["notes"])
        (series,) = [one for one in result["convergence"]["series"] if one["name"] == "loss"]
        self.assert_values(series, values, first)

    def test_damaged_files_are_named_and_read_as_far_as_they_go(self):
        with open(write_events(os.path.join(self.folder, "whole"), "loss", LOSSES), "rb") as file:
            data = file.read()
        at = list(records(data))
        self.assertEqual(len(at), 41)  # the first says which version it is
        self.damaged(data[:at[-1] + 20], f"damaged at byte {at[-1]}: the file ends in the middle", LOSSES[:-1])
        self.damaged(data[:at[-1] + 3], "the file ends in the middle", LOSSES[:-1])
        broken = bytearray(data)
        broken[at[1] + HEADER + 5] ^= 1  # its content: the other records are whole
        self.damaged(bytes(broken), f"damaged at byte {at[1]}: the checksum of a record is wrong", LOSSES[1:], first=1)
        broken = bytearray(data)
        broken[at[30]] ^= 1  # a length: where the next begins is not known
        self.damaged(bytes(broken), f"damaged at byte {at[30]}: the checksum of a record's length", LOSSES[:29])
        self.damaged(b"\xff" * 100, "the checksum of a record's length is wrong", [])

    def test_every_cut_and_every_changed_byte_ends_in_an_answer(self):
        with open(write_events(os.path.join(self.folder, "whole"), "loss", LOSSES[:3]), "rb") as file:
            data = file.read()
        path = os.path.join(self.folder, "events.out.tfevents.2.cut")
        for at in range(0, len(data), 7):
            for changed in (data[:at], data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:]):
                with open(path, "wb") as file:
                    file.write(changed)
                status, _, said = report(path)
                self.assertIn(status, (0, 1, 2), said)


if __name__ == "__main__":
    if not importlib.util.find_spec("tensorboard"):
        raise Skip("no tensorboard package: scripts/setup test installs it")
    unittest.main(argv=sys.argv[:1])
