"""What a run cost: processor seconds and memory of process trees, commits and WAL of the database.

Read from /proc, once a second at most: a monitor that looks more often is part of what it measures.
"""

import os
import threading
from pathlib import Path
from typing import Any, Self

TICKS = os.sysconf("SC_CLK_TCK")


def tree_of(root: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of a tree, of children that have ended too."""
    return sum(sum(int(stat[n]) for n in (11, 12, 13, 14)) for pid in tree_of(root) if (stat := _stat(pid))) / TICKS


def memory_mb(root: int) -> float:
    """Proportional set size of a tree."""
    return sum(share_mb(pid) for pid in tree_of(root))


def process_mb(pid: int) -> float:
    """The most memory that one process ever held (its own peak, as the kernel kept it); 0 when it has ended."""
    return _kilobytes(f"/proc/{pid}/status", "VmHWM:") / 1024


def share_mb(pid: int) -> float:
    """What one process holds now, with its share of what others hold too: for servers whose buffers are everybody's."""
    return _kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") / 1024


def _kilobytes(path: str, name: str) -> int:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name: state, parent, …; none when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


class Peak:
    """The most memory a tree used while the block ran."""

    def __init__(self, root: int) -> None:
        self.root, self.mb, self._ended = root, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self.mb = max(self.mb, memory_mb(self.root))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.mb = max(self.mb, memory_mb(self.root))
        self._ended.set()
        self._thread.join()
