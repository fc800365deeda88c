"""Bodies of any length, read once and in pieces, never held as a whole."""

import hashlib
from collections.abc import Callable, Iterator

from django.http import HttpRequest

from runs.api.problems import Problem

PIECE = 64 * 1024  # bytes read at a time
LARGEST = 1_000_000_000  # bytes of one load


def too_large() -> Problem:
    """413, with what to do instead."""
    return Problem(413, "too_large", f"One load takes at most {LARGEST:,} bytes; send the rows in several.")


class Body:
    """The bytes of a request, hashed on their way."""

    def __init__(self, request: HttpRequest) -> None:
        if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST:
            raise too_large()
        self._read = _reader_of(request)
        self._hasher = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._read(PIECE):
            self._size += len(piece)
            if self._size > LARGEST:
                raise too_large()
            self._hasher.update(piece)
            yield piece

    def digest(self) -> str:
        """SHA-256 of the whole body, in hex; reads what nobody has read yet."""
        for _ in self:
            pass
        return self._hasher.hexdigest()


def body_of(request: HttpRequest) -> Body:
    """The body of a request that is read as a stream; the same object each time."""
    held: Body = getattr(request, "_streamed_body", None) or Body(request)
    request._streamed_body = held  # type: ignore[attr-defined]
    return held


def _reader_of(request: HttpRequest) -> Callable[[int], bytes]:
    # Django takes a chunked request for an empty one. Servers that mark its end let us read it all the same.
    if "chunked" not in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return request.read
    if not request.META.get("wsgi.input_terminated"):
        raise Problem(411, "length_required", "Send a Content-Length: this server does not read chunked requests.")
    read: Callable[[int], bytes] = request.META["wsgi.input"].read
    return read
