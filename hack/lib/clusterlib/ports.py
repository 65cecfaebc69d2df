"""Free loopback ports.

Callers: `apiserver`. A port may be taken between the answer and its use; callers try again.
"""

import socket

from clusterlib.controlplane import LOOPBACK


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listened on just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
