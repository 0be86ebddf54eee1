#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values that a job prints, recorded as TSCOPE_SCALARS says: output_values.py LIBTSCOPE TSCOPE-REPORT.

The output must arrive byte for byte as without the preload.
"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from in_folder import InFolder  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402

LIBRARY, REPORT = sys.argv[1:3]

# tscope_step() shows that the program trains.
BEGIN = """
import ctypes, os, sys, threading
step = getattr(ctypes.CDLL(None), "tscope_step", lambda number: None)
step(ctypes.c_uint64(0))
"""


class Output(InFolder):
    def setUp(self):
        super().setUp()
        self.traces = os.path.join(self.folder, "traces")

    def run_program(self, program, scalars="stdout", preload=True, begin=BEGIN):
        settings = {"TSCOPE_SCALARS": scalars} if scalars else {}
        environment = observed_environment(preload and LIBRARY, self.traces, PYTHONIOENCODING="utf-8", **settings)
        done = subprocess.run([sys.executable, "-c", begin + program], env=environment, capture_output=True)
        return done.stdout, done.stderr, done.returncode

    def values(self, program, scalars="stdout"):
        """Compares the output with that of a run without the preload, and returns all series."""
        self.assertEqual(self.run_program(program, scalars), self.run_program(program, preload=False))
        return {row["name"]: row for row in json_of(REPORT, self.traces)["convergence"]["series"]}

    def test_printed_values_are_seen(self):
        rows = self.values("for i in range(100): print(f'step {i}: loss={5 - i / 25}, grad_norm {i}', flush=i % 3 == 0)")
        self.assertEqual((rows["loss"]["values"], rows["loss"]["first_step"], rows["loss"]["last_step"]), (100, 0, 99))
        self.assertAlmostEqual(rows["loss"]["best"], 5 - 99 / 25)
        self.assertEqual(rows["grad_norm"]["values"], 100)

    def test_lines_in_pieces(self):
        rows = self.values("for part in ('st', 'ep 7: lo', 'ss=', '1.', '25', chr(10)): os.write(1, part.encode())")
        self.assertEqual((rows["loss"]["last"], rows["loss"]["first_step"]), (1.25, 7))

    def test_not_a_number_is_seen(self):
        rows = self.values("print({'loss': float('nan'), 'learning_rate': 1e-5})")
        self.assertEqual((rows["loss"]["not_finite"], rows["learning_rate"]["last"]), (1, 1e-5))

    def test_standard_error(self):
        program = "print('loss=1'); sys.stderr.write('loss=2\\n'); sys.stderr.flush()"
        self.assertEqual(self.values(program, "stderr")["loss"]["last"], 2)

    def test_by_default(self):
        self.assertEqual(self.values("print('step 1: loss=1')", None)["loss"]["values"], 1)

    def test_switched_off(self):
        self.assertEqual(self.values("print('step 1: loss=1')", "off"), {})

    def test_much_and_binary_output(self):
        self.values("os.write(1, bytes(range(256)) * 4000); print('x' * 100000); print('loss=1')")

    def test_threads(self):
        rows = self.values("""
def work(name):
    for i in range(200):
        os.write(1, b'')
        ctypes.CDLL(None)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print('loss=4')
""")
        self.assertEqual(rows["loss"]["values"], 1)

    def test_children_are_not_recorded(self):
        rows = self.values("""
print('loss=3', flush=True)
child = os.fork()
if child == 0:
    print('loss=100', flush=True)
    os._exit(7)
print('exit', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
        self.assertEqual((rows["loss"]["values"], rows["loss"]["last"]), (1, 3))

    def test_errors_do_not_change(self):
        self.values("""
os.close(1)
try:
    os.write(1, b'loss=1\\n')
except OSError as error:
    sys.stderr.write(f'{error.errno}\\n')
sys.exit(5)
""")

    def test_a_program_that_does_not_train(self):
        program = "print('step 1: loss=1')"
        self.assertEqual(self.run_program(program, begin=""), self.run_program(program, preload=False, begin=""))
        self.assertFalse(os.path.exists(self.traces))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
