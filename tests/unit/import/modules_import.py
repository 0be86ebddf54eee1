#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads module statistics with tscope-report: modules_import.py TSCOPE-REPORT."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from in_folder import InFolder  # noqa: E402
from observed import json_of, run  # noqa: E402

REPORT = sys.argv[1]


def stat(name, **more):
    return {"fqn": name, "param_per_module": 100, "grad_per_module": 100, "grad_total": 0,
            "act_fw_per_module": 10, "act_bw_per_module": 10, "act_grad_per_module": 1, "act_total": 20,
            "input_per_module": 4, "output_per_module": 4, "fw_runtime_per_module": 1.0,
            "bw_runtime_per_module": 2.0, "is_leaf": True, **more}


NET = {"mod_order": {"fw_pre_order": ["N", "N.a", "N.b", "N.b.c"]},
       "mod_stats": [
           stat("N.b", grad_total=40, act_grad_per_module=7, act_total=500),
           stat("N", param_per_module=1000, act_total=600, fw_runtime_per_module=10.0,
                bw_runtime_per_module=20.5),
           stat("N.b.c", grad_total=300, act_grad_per_module=60, act_total=320),
           stat("N.a", grad_total=500, act_grad_per_module=5, act_total=100)]}


class Modules(InFolder):
    def write(self, document):
        path = os.path.join(self.folder, "modules.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(document if isinstance(document, str) else json.dumps(document))
        return path

    def modules(self, document):
        return json_of(REPORT, self.write(document))["modules"]

    def test_plain_step(self):
        modules = self.modules(NET)
        # N: 1000+0+1+600, N.a: 1000+500+5+100, N.b: 1000+40+7+500, N.b.c: 1000+300+60+320
        self.assertEqual(modules["plain_peak_bytes"], 1680)
        self.assertEqual(modules["plain_peak_module"], "N.b.c")
        self.assertEqual(modules["plain_time_ms"], 30.5)
        self.assertEqual([row["plain_peak_bytes"] for row in modules["tree"]], [1601, 1605, 1547, 1680])

    def test_tree_in_the_order_of_the_forward_pass(self):
        rows = [(row["name"], row["parent"], row["depth"]) for row in self.modules(NET)["tree"]]
        self.assertEqual(rows, [("N", None, 0), ("N.a", "N", 1), ("N.b", "N", 1), ("N.b.c", "N.b", 2)])

    def test_missing_modules_in_between(self):
        rows = self.modules([stat("M"), stat("M.list.0"), stat("M.list.0.x.y"), stat("Mx")])["tree"]
        self.assertEqual([(row["parent"], row["depth"]) for row in rows],
                         [(None, 0), ("M", 1), ("M.list.0", 2), (None, 0)])

    def test_missing_values_are_null(self):
        bare = {"mod_stats": [{"fqn": "M", "param_per_module": 8}, {"fqn": "M.a", "fw_runtime_per_module": 1}]}
        modules = self.modules(bare)
        self.assertEqual(modules["parameter_bytes"], 8)
        for name in ("plain_peak_bytes", "plain_peak_module", "plain_time_ms", "forward_ms"):
            self.assertIsNone(modules[name], name)
        self.assertIsNone(modules["tree"][1]["parameter_bytes"])

    def test_text(self):
        text = run(REPORT, self.write(NET)).stdout
        self.assertIn("Modules", text)
        self.assertIn("no sharding", text)

    def test_odd_documents(self):
        wild = {"mod_order": {"fw_pre_order": ["N", "N", 5, "other"]},
                "mod_stats": [stat("N"), stat("N"), 7, {"fqn": 3}, stat("."), stat("..a"), stat("")]}
        self.assertEqual(self.modules(wild)["count"], 5)
        for document in ({"mod_stats": []}, {"mod_stats": 5}, '{"mod_stats": [', "[" * 100000 + '"mod_stats"'):
            done = run(REPORT, self.write(document), ok=(2,))
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_file_that_cannot_be_used_is_told(self):
        damaged = os.path.join(self.folder, "a.json")
        with open(damaged, "w", encoding="utf-8") as file:
            file.write('{"mod_stats": [')
        report = json_of(REPORT, damaged, self.write(NET))
        self.assertEqual(report["modules"]["count"], 4)
        self.assertTrue([note for note in report["quality"]["notes"] if damaged in note and "left out" in note],
                        report["quality"]["notes"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
