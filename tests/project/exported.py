#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each function that the newest libraries export is hooked or has a reason: exported.py LIBTSCOPE [--newest].

The lists in preload/hooks/exported/ are what the libraries in the packages named there export. --newest: asks the package index
whether there is a newer version with functions that nobody has decided about (scripts/exported-functions).
"""
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "scripts", "lib"))
import library_functions as exported  # pylint: disable=wrong-import-position  # noqa: E402

NEWEST = "--newest" in sys.argv and not sys.argv.remove("--newest")
LIBTSCOPE = os.path.realpath(sys.argv.pop(1))


class Exported(unittest.TestCase):
    def setUp(self):
        self.hooked, self.known, self.lists = set(exported.exported_by(LIBTSCOPE)), exported.table(), exported.listed()

    def test_each_function_is_hooked_or_has_a_reason(self):
        self.assertGreater(len(self.lists), 5)
        for library, (_, functions) in self.lists.items():
            self.assertGreater(len(functions), 50)
            self.assertEqual(exported.undecided(library, functions, self.hooked, self.known), [], library)

    def test_each_has_one_decision(self):
        self.assertEqual(self.known.twice, [])
        for library, functions in self.known.functions.items():
            self.assertEqual(sorted(self.hooked & set(functions)), [], library)
            self.assertEqual({reason for reason in functions.values() if reason not in self.known.reasons}, set())

    def test_nothing_is_decided_about_functions_that_do_not_exist(self):
        for library, functions in self.known.functions.items():
            names = {name for name in functions if not name.endswith("*")}
            self.assertEqual(sorted(names - set(self.lists[library][1])), [], library)

    def test_the_report_knows_how_far_the_lists_go(self):
        with open(os.path.join(exported.ROOT, "analyzer", "analyses", "findings", "newest_known.def"),
                  encoding="utf-8") as file:
            known = dict((fact, f"{major}.{minor}") for fact, major, minor in
                         re.findall(r'X\((\w+), "[^"]*", (\d+), (\d+)\)', file.read()))
        for fact, library in (("NCCL", "libnccl.so.2"), ("CUDA_RUNTIME", "libcudart.so.13")):
            version = self.lists[library][0].split()[1]
            self.assertEqual(known[fact], ".".join(version.split(".")[:2]), library)

    def test_a_row_that_is_taken_out_is_missed(self):
        with open(exported.TABLE, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("#") or "ncclCommSuspend" not in line]
        functions = self.lists["libnccl.so.2"][1]
        self.assertIn("ncclCommSuspend", exported.undecided("libnccl.so.2", functions, self.hooked,
                                                            exported.Unhooked(lines)))

    @unittest.skipUnless(NEWEST, "asks the package index: in scripts/test all")
    def test_newest(self):
        done = subprocess.run([os.path.join(HERE, "..", "..", "scripts", "exported-functions"), "--check", LIBTSCOPE],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
