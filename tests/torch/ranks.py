# SPDX-License-Identifier: MIT
"""ranks.py COUNT SCRIPT [ARGUMENT...]: starts the ranks of a job on this machine, like torchrun, but without importing
PyTorch itself. If one fails, ends the others, and exits with its status."""
import os
import socket
import subprocess
import sys
import time


def free_port():
    """Not one of the ports that the system assigns, so no other process gets it before the job does."""
    for port in range(10000 + os.getpid() % 20000, 32000):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise OSError("no port is free")


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
