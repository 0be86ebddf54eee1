#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""NCCL's collectives with a configuration of the call are recorded like those without one, once each, and what it asks for:
check_coll_config_calls.py LIBTSCOPE PROGRAM.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import read_trace  # noqa: E402
from observed import observed_environment  # noqa: E402

WANTED = [("ALLREDUCE", 100), ("BROADCAST", 7), ("REDUCE", 11), ("ALLGATHER", 5), ("REDUCE_SCATTER", 6),
          ("ALLTOALL", 4), ("GATHER", 8), ("SCATTER", 9)]


def main():
    library, program = sys.argv[1:3]
    alone = subprocess.run([program], check=False)
    if alone.returncode:
        return alone.returncode
    names = {value: name for name, value in read_trace.ENUMS["OPS"].items()}
    with tempfile.TemporaryDirectory(prefix="coll-config-") as directory:
        subprocess.run([program], check=True, env=observed_environment(library, directory))
        trace, = read_trace.read_all(directory)
    seen = [(names[call.tag], call.count) for call in trace.records["Collective"] if not call.result]
    print(seen)
    assert seen == [call for call in WANTED for _ in range(2)], seen
    asked = [(names[one.tag], trace.strings[one.algorithm], one.cta_policy, one.user_tag)
             for one in trace.records["CollectiveConfig"]]
    # The last one has none.
    assert asked == [(name, "ring", 1, 7) for name, _ in WANTED[:-1] for _ in range(2)], asked
    keys = [(one.comm, one.seq) for one in trace.records["CollectiveConfig"]]
    assert keys == [(call.comm, call.seq) for call in trace.records["Collective"]][:len(keys)], keys
    ran = len(trace.records["CollectiveRun"])
    assert ran == len(seen), f"{ran} ran on the GPUs"
    return 0


sys.exit(main())
