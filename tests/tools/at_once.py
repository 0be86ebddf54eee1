# SPDX-License-Identifier: MIT
"""Runs the tests of a program that mostly wait beside each other, in threads:

    at_once.main(4)    in place of unittest.main(); the program's arguments are names of tests

Each test has its own folder and its own processes. There is no setUpClass().
"""
import concurrent.futures
import io
import sys
import unittest


def each(suite):
    for one in suite:
        yield from each(one) if isinstance(one, unittest.TestSuite) else [one]


def run(test):
    said = io.StringIO()
    done = unittest.TextTestRunner(said, verbosity=2).run(unittest.TestSuite([test]))
    print(said.getvalue(), flush=True)
    return done.wasSuccessful()


def main(count):
    load, names = unittest.defaultTestLoader, sys.argv[1:]
    module = sys.modules["__main__"]
    suite = load.loadTestsFromNames(names, module) if names else load.loadTestsFromModule(module)
    tests = list(each(suite))
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        passed = list(pool.map(run, tests))
    print(f"{passed.count(True)} of {len(tests)} tests passed")
    sys.exit(0 if tests and all(passed) else 1)
