# SPDX-License-Identifier: MIT
"""Tests that each have a folder of their own."""
import tempfile
import unittest


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="tscope-test-")
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
