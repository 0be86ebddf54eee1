# SPDX-License-Identifier: MIT
"""Lines of a program without Python: native_calls.py LIBTSCOPE TSCOPE-REPORT PROGRAM. PROGRAM (native_calls.c)
prints the lines in which it waits and copies. The report must name them. If the file is stripped or replaced,
it must name only what is still certain."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from in_folder import InFolder  # noqa: E402
from observed import json_of, observed_environment  # noqa: E402
from outcomes import Skip  # noqa: E402

LIBRARY, REPORT, PROGRAM = (os.path.realpath(sys.argv.pop(1)) for _ in range(3))
STEPS = 200
# The program is copied to another folder, so its run path does not work.
RUNTIME = os.path.dirname(next(line.split()[2] for line in subprocess.run(
    ["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout.splitlines() if "libcudart" in line))


class Lines(InFolder):
    def setUp(self):
        super().setUp()
        self.program = shutil.copy(PROGRAM, os.path.join(self.folder, "train"))

    def run_job(self, **settings):
        traces = os.path.join(self.folder, "traces")
        shutil.rmtree(traces, ignore_errors=True)
        environment = observed_environment(LIBRARY, traces, LD_LIBRARY_PATH=RUNTIME, **settings)
        done = subprocess.run([self.program, str(STEPS)], env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return [line.split() for line in done.stdout.splitlines()]

    def report(self):
        return json_of(REPORT, os.path.join(self.folder, "traces"))["lines"]

    def found(self):
        return {(line["file"], line["line"], line["function"]) for line in self.report()["lines"]}

    def test_lines_of_the_program(self):
        printed = self.run_job()
        self.assertEqual(self.found(), {(file, int(line), function) for file, line, function, _ in printed})
        tree = json.dumps(self.report()["stacks"])
        for function in ("train_step", "main"):  # the callers of these two
            self.assertIn(f'"{function}"', tree)

    def test_without_debug_information_there_are_functions(self):
        subprocess.run(["strip", "--strip-debug", self.program], check=True)
        printed = self.run_job()
        self.assertEqual({(os.path.basename(file), line, function) for file, line, function in self.found()},
                         {("train", None, function) for _, _, function, _ in printed})

    def test_without_symbols_there_are_addresses(self):
        subprocess.run(["strip", self.program], check=True)
        self.run_job()
        found = self.found()
        self.assertEqual(len(found), 2, found)
        for file, line, function in found:
            self.assertEqual((os.path.basename(file), line), ("train", None))
            self.assertRegex(function, r"^\+0x[0-9a-f]+$")

    def test_another_build_at_the_same_path_has_no_names(self):
        self.run_job()
        note = os.path.join(self.folder, "note")
        subprocess.run(["objcopy", "--dump-section", f".note.gnu.build-id={note}", self.program], check=True)
        with open(note, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        subprocess.run(["objcopy", "--update-section", f".note.gnu.build-id={note}", self.program], check=True)
        self.assertTrue(all(function.startswith("+0x") for _, _, function in self.found()), self.found())
        os.unlink(self.program)
        self.assertTrue(all(function.startswith("+0x") for _, _, function in self.found()), self.found())

    def test_turned_off(self):
        self.run_job(TSCOPE_LINES="off")
        self.assertEqual(self.report()["lines"], [])


if __name__ == "__main__":
    if not shutil.which("objcopy"):
        raise Skip("there is no objcopy")
    unittest.main()
