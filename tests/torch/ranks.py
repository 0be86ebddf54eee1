# SPDX-License-Identifier: MIT
"""ranks.py COUNT SCRIPT [ARGUMENT...]: starts the ranks of a job on this machine, like torchrun, but without importing
PyTorch itself. If one fails, ends the others, and exits with its status."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from ports import free_port  # noqa: E402


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    shared = dict(os.environ, WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=str(free_port()))
    running = [subprocess.Popen([sys.executable, *command], env=dict(shared, RANK=str(rank), LOCAL_RANK=str(rank)))
               for rank in range(count)]
    status = 0
    while running and status == 0:
        time.sleep(0.02)
        ended = [rank for rank in running if rank.poll() is not None]
        running = [rank for rank in running if rank not in ended]
        status = next((rank.returncode for rank in ended if rank.returncode), 0)
    for rank in running:
        rank.terminate()
    for rank in running:
        rank.wait()
    sys.exit(1 if status else 0)


main()
