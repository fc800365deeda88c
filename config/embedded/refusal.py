"""The one exception that ends a local start: a plain sentence for the person at the terminal."""

import errno
from pathlib import Path


class Refusal(Exception):
    """One sentence that says what is in the way and what to do about it; shown without a traceback."""


def of_system(error: OSError, folder: Path) -> Refusal:
    """The sentence for what the operating system answered while we worked in `folder`."""
    where = error.filename or folder
    if error.errno == errno.ENOSPC or error.errno == errno.EDQUOT:
        return Refusal(full_disk(folder))
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refusal(f"This user may not write to {where}: set SIGNOFF_DATA_DIR to a folder that belongs to it.")
    return Refusal(f"{where}: {error.strerror or error}. Set SIGNOFF_DATA_DIR to a folder on a local disk if that helps.")


def full_disk(folder: Path) -> str:
    """The sentence for a disk without room."""
    return f"The disk with {folder} is full: free some space there, or set SIGNOFF_DATA_DIR to another disk."


def of_program(name: str, said: str, log: Path, folder: Path) -> Refusal:
    """The sentence for a program that ended while starting; `said` is what it wrote before it did."""
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return Refusal(full_disk(folder))
    if "GLIBC_" in said or "Exec format error" in said or "cannot execute" in said:
        return Refusal(no_program(name))
    if "user does not exist" in said:
        return Refusal(
            "PostgreSQL does not run for an account without a name: "
            "give this user number an entry in /etc/passwd, or set DATABASE_URL to your own server."
        )
    if "Permission denied" in said or "Operation not permitted" in said:
        return Refusal(
            f"{name} was refused access while starting (see {log}): "
            f"set SIGNOFF_DATA_DIR to a folder on a local disk that this user owns."
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if "FATAL" in line or "rror" in line), lines[-1] if lines else "")
    return Refusal(f"{name} did not start ({last or 'it said nothing'}); its log is {log}.")


def no_program(name: str) -> str:
    """The sentence for a machine that the packaged binaries do not cover."""
    setting = "DATABASE_URL" if name == "PostgreSQL" else "REDIS_URL"
    own = "PostgreSQL 14 or newer" if name == "PostgreSQL" else "Redis 7 or Valkey"
    return f"There is no packaged {name} that runs on this machine: start {own} yourself and set {setting}."
