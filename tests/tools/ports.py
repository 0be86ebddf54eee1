# SPDX-License-Identifier: MIT
"""A port of this machine for a job or a server that a test starts."""
import os
import socket


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
