#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's own tests of torch.distributed, from its wheel, on gloo with two processes per test: c10d_suite.py REPORT
TEST..., or 3/8 for every eighth test from the third on. Rewrites a JUnit file after each test. The processes are
forked, because new ones would import PyTorch for each of 300 tests.
"""
import os
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

FOLDER = tempfile.mkdtemp(prefix="c10d-")
os.environ.update(BACKEND="gloo", WORLD_SIZE="2", TEMP_DIR=FOLDER, MASTER_ADDR="127.0.0.1",
                  MASTER_PORT="29765")
for name in ("barrier", "test_dir"):
    os.mkdir(os.path.join(FOLDER, name))
os.environ["INIT_METHOD"] = f"file://{FOLDER}/shared"

import torch
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend


class Gloo(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Result(unittest.TestResult):
    """Writes down the result of each test when it ends."""

    def __init__(self, path):
        super().__init__()
        self.path, self.suite, self.began = path, ElementTree.Element("testsuite"), 0.0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _add(self, test, kind=None, text=""):
        case = ElementTree.SubElement(self.suite, "testcase", name=test.id().split(".")[-1],
                                      time=f"{time.monotonic() - self.began:.2f}")
        if kind:
            ElementTree.SubElement(case, kind).text = text[-2000:]
        ElementTree.ElementTree(self.suite).write(self.path + ".new")
        os.replace(self.path + ".new", self.path)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failure", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(test, err)


def main():
    path, *wanted = sys.argv[1:]
    names = unittest.TestLoader().getTestCaseNames(Gloo)
    chosen = [name for name in names if name in wanted]
    if "/" in wanted[0]:
        share, shares = map(int, wanted[0].split("/"))
        chosen = names[share - 1::shares]
    unittest.TestSuite(map(Gloo, chosen)).run(Result(path))


if __name__ == "__main__":
    main()
