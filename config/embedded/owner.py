"""Whose account the packaged servers run under, and what that account can reach."""

import os
import pwd
import stat
from pathlib import Path
from typing import NamedTuple

NOBODY = 65534  # its number on every system that does not name it


class Owner(NamedTuple):
    """An account that a program is run as."""

    uid: int
    gid: int


def owner_for(data: Path) -> Owner | None:
    """The account for the servers: None (our own) unless we are root, which PostgreSQL refuses to run as.

    Data that an ordinary user made stays that user's, so that `sudo` once does not lock them out for good.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (status := data.stat()).st_uid != 0:
        return Owner(status.st_uid, status.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return Owner(NOBODY, NOBODY)
    return Owner(nobody.pw_uid, nobody.pw_gid)


def may_enter(path: Path, owner: Owner | None) -> bool:
    """Whether `owner` can walk to `path` and, where it exists, enter or run it (None is us: we shall see)."""
    return owner is None or all(_has_x(step, owner) for step in (path, *path.parents) if step.exists())


def _has_x(path: Path, owner: Owner) -> bool:
    status = path.stat()
    if status.st_uid == owner.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == owner.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def give(path: Path, owner: Owner | None) -> Path:
    """Make `path` (one file or folder) the owner's; gives `path` back."""
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)
    return path
