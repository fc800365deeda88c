"""Runs one program on a leash: it is asked to stop when the process that started it is gone.

Run as a script, before the program takes its place (same process id):

    python -I -S leash.py SIGNAL PARENT UID:GID|- PROGRAM ARGUMENT...

A script of its own rather than a hook between fork and exec: those are unsafe once the starter has threads.
It drops root first, because changing the user clears the parent-death signal. Where the kernel has no such
signal (outside Linux) the program simply runs; the next start finds it by its working folder and ends it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(farewell: int, parent: int, user: str, command: list[str]) -> None:
    """Become `command`; returns only by raising or exiting."""
    if user != "-":
        uid, gid = (int(part) for part in user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, farewell)
    if os.getppid() != parent:  # it died before the line above could notice
        sys.exit(1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # Python's own choices, inherited by exec
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot execute {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
