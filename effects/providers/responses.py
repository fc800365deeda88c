"""HTTP responses as bytes, and what they say. Pure: the same reader tells the wire when a response is whole, and reads it afterwards.

Parsing is llhttp's, in its strict mode (httptools): two lengths, a bare line feed or a folded header are refused, not guessed at.
"""

from dataclasses import dataclass, field

import httptools

NO_BODY_LENGTH = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Response:
    """One final response: its status, its headers by lower-case name, and its body without the framing."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class ResponseReader:
    """Fed bytes as they come; `response` is set once a final response is whole. Interim ones (1xx) are passed over."""

    def __init__(self) -> None:
        self.response: Response | None = None
        self.ends_connection = True  # until a whole response says otherwise
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._is_open_ended = False

    def feed(self, data: bytes) -> None:
        """Raises ValueError, saying why, when the bytes so far are not an HTTP response."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise ValueError("it switches protocols") from None
        except httptools.HttpParserError as error:
            self.ends_connection = True
            if self.response is None:
                raise ValueError(str(error)) from None

    def end(self) -> None:
        """The sender has closed: that is how a body without a length ends."""
        if self.response is None and self._is_open_ended:
            self._finish()

    def on_message_begin(self) -> None:
        self._headers, self._body = {}, bytearray()
        if self.response is not None:  # more than was asked for
            self.ends_connection = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        self._is_open_ended = self._parser.get_status_code() >= 200 and NO_BODY_LENGTH.isdisjoint(self._headers)

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        if self.response is None and self._parser.get_status_code() >= 200:
            self.ends_connection = not self._parser.should_keep_alive()
            self._finish()

    def _finish(self) -> None:
        self.response = Response(self._parser.get_status_code(), self._headers, bytes(self._body))


def read_response(raw: bytes) -> Response:
    """The final response in the bytes received. Raises ValueError when there is no whole one."""
    reader = ResponseReader()
    reader.feed(raw)
    reader.end()
    if reader.response is None:
        raise ValueError("the response is not whole")
    return reader.response
