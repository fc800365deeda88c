"""PostgreSQL and Redis for a machine that has neither: real servers from Python packages, in one data folder.

    with embedded.start() as services:
        services.database_url, services.redis_url

The servers end with the process that started them, orderly on `stop` and also when it is killed.
"""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from config.embedded.child import Child
from config.embedded.home import Home, is_free
from config.embedded.postgres import Postgres
from config.embedded.refusal import Refusal, of_system
from config.embedded.valkey import Valkey

__all__ = ["Child", "Home", "Refusal", "Services", "is_free", "start"]


class Services:
    """The running servers of one data folder."""

    def __init__(self, home: Home, *, postgres: bool = True, valkey: bool = True, keep_home: bool = False) -> None:
        self.home = home
        self.postgres = Postgres(home) if postgres else None
        self.valkey = Valkey(home) if valkey else None
        self._keep_home = keep_home

    @property
    def data_dir(self) -> Path:
        """Where the data really is: not always where it was asked for (see `Home.open`)."""
        return self.home.path

    @property
    def database_url(self) -> str:
        """The address of the database with its password; empty when PostgreSQL is not ours to run."""
        return self.postgres.url if self.postgres else ""

    @property
    def redis_url(self) -> str:
        """The address of Redis with its password; empty when Redis is not ours to run."""
        return self.valkey.url if self.valkey else ""

    def start(self) -> None:
        """Start what is not running; on a refusal, leave nothing running."""
        try:
            for server in self._servers():
                if server.child is None or server.child.code() is not None:
                    server.start()
        except OSError as error:
            self.stop()
            raise of_system(error, self.home.path) from error
        except BaseException:
            self.stop()
            raise

    def dead(self) -> list[str]:
        """The names of servers that have ended without being asked; `start` brings them back."""
        return [server.name for server in self._servers() if server.child and server.child.code() is not None]

    def stop(self) -> None:
        """End the servers, then let go of the data folder (unless whoever opened it keeps it)."""
        for server in reversed(self._servers()):
            server.stop()
        if not self._keep_home:
            self.home.close()

    def _servers(self) -> list[Postgres | Valkey]:
        return [server for server in (self.postgres, self.valkey) if server]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


def start(
    data_dir: Path | str | None = None,
    *,
    postgres: bool = True,
    valkey: bool = True,
    say: Callable[[str], object] = print,
) -> Services:
    """The running servers of `data_dir` (default: SIGNOFF_DATA_DIR, else `.signoff`); raises `Refusal`."""
    services = Services(Home.open(data_dir, say=say), postgres=postgres, valkey=valkey)
    services.start()
    return services
