# SPDX-License-Identifier: MIT
"""Tests with a folder: each one of its own, or all of a class one."""
import os
import tempfile
import unittest


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="tscope-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name


class InOneFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="tscope-test-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)
