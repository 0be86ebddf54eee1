# SPDX-License-Identifier: MIT
"""A port of this machine for a job or a server that a test starts."""
import os
import socket


def free_port(count=1):
    """The first of so many in a row. Not of those that the system assigns, so no other process gets it before the job."""
    for first in range(10000 + os.getpid() % 20000, 32000):
        try:
            for port in range(first, first + count):
                with socket.socket() as tried:
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    tried.bind(("127.0.0.1", port))
            return first
        except OSError:
            pass
    raise OSError("no port is free")
