"""What is looked at while a giant plan goes through: the memory of every process, what the broker holds, and how long pages take."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redis import Redis

from config.demo.visitors import Person
from tests.bench.meters import process_mb, share_mb, tree_of

EVERY = 0.5  # seconds between two looks at memory; the broker is looked at five times as often


class Watch:
    """The peaks of one run: megabytes by process, entries by key of the broker."""

    def __init__(self, roots: Mapping[str, int], servers: Mapping[str, int], redis_url: str) -> None:
        self.roots, self.servers, self.redis = roots, servers, Redis.from_url(redis_url, decode_responses=True)
        self.mb: dict[str, float] = defaultdict(float)
        self.held: dict[str, int] = defaultdict(int)
        self.most_held = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        looks = 0
        while not self._ended.wait(EVERY / 5):
            self._look_at_broker()
            looks += 1
            if looks % 5 == 0:
                self._look_at_memory()

    def _look_at_memory(self) -> None:
        for name, root in self.roots.items():
            for pid in tree_of(root):
                self.mb[name] = max(self.mb[name], process_mb(pid))
        for name, root in self.servers.items():
            for pid in tree_of(root):
                self.mb[name] = max(self.mb[name], share_mb(pid))

    def _look_at_broker(self) -> None:
        """Messages wait in lists; those taken and not yet acknowledged lie in a hash. Its index and the bindings are no messages."""
        sizes: dict[str, Callable[[Any], Any]] = {
            "list": self.redis.llen, "hash": self.redis.hlen, "zset": self.redis.zcard, "set": self.redis.scard,
        }  # fmt: skip
        messages = 0
        for name in self.redis.scan_iter():
            kind = str(self.redis.type(name))
            size = int(sizes[kind](name)) if kind in sizes else 1
            self.held[name] = max(self.held[name], size)
            messages += size if kind in ("list", "hash") else 0
        self.most_held = max(self.most_held, messages)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._look_at_memory()


class Reader(Person):
    """Somebody signed in, who notes how long each page took and how large each form was."""

    def __init__(self, address: str, email: str, password: str) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.sent: dict[str, int] = {}
        super().__init__(address, email, password)

    def look(self, name: str, path: str) -> str:
        """The page at `path`; its time is noted under `name`."""
        began = time.perf_counter()
        page = self.visit(path)
        self.seconds[name].append(time.perf_counter() - began)
        return page

    def take(self, path: str, file: Path) -> int:
        """Save what is downloaded from `path`; gives its size in bytes."""
        with self._open(self._base + path, timeout=600) as answer, file.open("wb") as out:
            while piece := answer.read(1 << 16):
                out.write(piece)
            return out.tell()

    def slowest(self) -> tuple[str, float]:
        """The name and the seconds of the slowest look."""
        return max(((name, max(times)) for name, times in self.seconds.items()), key=lambda found: found[1])

    def _fetch(self, path: str, body: bytes | None) -> str:
        if body is not None:
            self.sent[path] = len(body)
        return super()._fetch(path, body)


class Onlooker(threading.Thread):
    """Looks at one page after the other until told to stop; what went wrong is in `trouble`."""

    def __init__(self, reader: Reader, pages: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self.reader, self.pages, self.over, self.trouble = reader, pages, threading.Event(), ""

    def run(self) -> None:
        try:
            while not self.over.is_set():
                for name, path in self.pages.items():
                    self.reader.look(name, path)
                    if self.over.wait(0.05):
                        break
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"
