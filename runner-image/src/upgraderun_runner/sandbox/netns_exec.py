"""Run one program in a network namespace with loopback only, and end whatever it leaves behind.

Started by the Inline driver as `python -I -S netns_exec.py [--probe] [--share-network] -- ARGV...`;
imported by nothing. It imports little, because it starts before every command of a check. The user
namespace maps the caller's uid to itself, so files keep their owner and a non-zero uid loses every
capability at exec. A kernel that refuses is reported by `--probe`; nothing is guessed.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
REFUSED = 125
"""Exit status when the namespace could not be made."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - /proc, one write call each
        file.write(text)


def enter_namespaces() -> None:
    """Leave the caller's network. Raises OSError if the kernel refuses."""
    uid, gid = os.getuid(), os.getgid()
    if _libc().unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def _children() -> list[int]:
    with open("/proc/thread-self/children", encoding="ascii") as file:  # noqa: PTH123 - /proc
        return [int(pid) for pid in file.read().split()]


def _end_descendants() -> None:
    """Kill until nothing is left: orphans come to us, because we are their subreaper."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def _stop(_number: int, _frame: object) -> None:
    _end_descendants()
    os._exit(128 + signal.SIGTERM)


def supervise(argv: list[str]) -> int:
    """Run the program as a child, then end its descendants; answer its shell-style exit status."""
    libc = _libc()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _stop)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - argv only, no shell; PATH is the command's own
        except OSError as error:
            sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127)
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    _end_descendants()
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def main(arguments: list[str]) -> int:
    """Parse the two flags, enter the namespaces unless told otherwise, run the rest."""
    if arguments[:1] == ["--probe"]:
        try:
            enter_namespaces()
        except OSError:
            return REFUSED
        return 0
    share = arguments[:1] == ["--share-network"]
    rest = arguments[1:] if share else arguments
    if rest[:1] != ["--"] or len(rest) < 2:
        sys.stderr.write("usage: netns_exec.py [--probe] [--share-network] -- ARGV...\n")
        return 2
    if not share:
        try:
            enter_namespaces()
        except OSError as error:
            sys.stderr.write(f"no network namespace: {error}\n")
            return REFUSED
    return supervise(rest[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
