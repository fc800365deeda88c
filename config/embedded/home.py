"""The data folder: who holds it, the secrets and ports it remembers, and where it lies."""

import fcntl
import hashlib
import json
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Self

from config.embedded.owner import Owner, may_enter, owner_for
from config.embedded.refusal import Refusal, of_system

DEFAULT = Path(__file__).resolve().parents[2] / ".signoff"
ELSEWHERE = Path("/var/tmp")


class Home:
    """An open data folder, held by this process until `close` (or its death, however that comes)."""

    def __init__(self, path: Path, owner: Owner | None, lock: int) -> None:
        self.path = path
        self.owner = owner
        self.log = path / "log"
        self._lock = lock

    @classmethod
    def open(cls, path: Path | str | None = None, *, servers: bool = True, say: Callable[[str], object] = print) -> Self:
        """The data folder at `path`, made if missing (default: SIGNOFF_DATA_DIR, else `.signoff`).

        With `servers` it must lie where their account can enter: where `path` does not, it is below /var/tmp.
        """
        wanted = Path(path or os.environ.get("SIGNOFF_DATA_DIR") or DEFAULT).absolute()
        place = wanted
        try:
            if wanted.exists() and not wanted.is_dir():
                raise Refusal(f"{wanted} is not a folder: move it away, or set SIGNOFF_DATA_DIR elsewhere.")
            owner = owner_for(wanted / "postgres") if servers else None
            if not may_enter(wanted, owner):
                place = ELSEWHERE / f"signoff-{hashlib.sha256(str(wanted).encode()).hexdigest()[:12]}"
                owner = owner_for(place / "postgres")
                say(
                    f"PostgreSQL does not run as root, and the account it runs under may not enter {wanted}, "
                    f"so the data is in {place}."
                )
            _make(place, 0o711 if owner else 0o700)
            lock = _hold(place)
            _make(place / "log", 0o700)
            _make(place / "secrets", 0o700)
        except OSError as error:
            raise of_system(error, place) from error
        return cls(place, owner, lock)

    def close(self) -> None:
        """Let go of the folder, so that another start may have it."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def secret(self, name: str, make: Callable[[], str] = lambda: secrets.token_hex(24)) -> str:
        """The secret called `name`: made once, kept in a file that only we can read, the same ever after."""
        file = self.path / "secrets" / name
        if not file.exists():
            write(file, make() + "\n", 0o600)
        return file.read_text().strip()

    def port(self, name: str) -> int:
        """A free port on 127.0.0.1 for `name`: the one it had last time, unless a stranger has taken that."""
        file = self.path / "ports.json"
        try:
            known: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            known = {}
        if not is_free(known.get(name, 0)):
            known[name] = _any_port(known)
            write(file, json.dumps(known, indent=1) + "\n", 0o644)
        return known[name]


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of 127.0.0.1 (and it is a port: 0 is not)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: lingering is not busy
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return port > 0


def write(file: Path, text: str, mode: int) -> None:
    """Put `text` into `file` whole or not at all, even if the power fails in between."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "w") as out:
        os.fchmod(handle, mode)
        out.write(text)
        out.flush()
        os.fsync(handle)
    fresh.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)  # the name, too, is on the disk: a lost encryption key cannot be made again
    os.close(folder)


def _any_port(known: dict[str, int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in known.values():
            return port


def _make(folder: Path, mode: int) -> None:
    """Make one of our folders, or take an existing one: it must be ours where anybody could have laid it out."""
    shared = folder.parent == ELSEWHERE
    if not shared:
        folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        folder.mkdir(mode)
        folder.chmod(mode)  # mkdir's own is narrowed by the umask
    maker = (folder.lstat() if shared else folder.stat()).st_uid  # lstat: a link is whoever laid it
    if maker != os.geteuid() and (shared or os.geteuid() != 0):
        raise Refusal(f"{folder} belongs to another user: set SIGNOFF_DATA_DIR to a folder of your own.")


def _hold(folder: Path) -> int:
    """Take the folder's lock. The system lets go of it when we die, however we die, so it is never stale."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise Refusal(
            f"Signoff is already running on {folder} (process {holder}): "
            f"stop it first, or set SIGNOFF_DATA_DIR to another folder."
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock
