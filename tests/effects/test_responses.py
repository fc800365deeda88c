"""Responses as bytes: which are read, which are refused, and that it does not matter how they arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.providers.responses import Response, ResponseReader, read_response
from tests.effects.test_wire import CHUNKED, CLOSES, INTERIM, OK


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not http at all",
        OK[:-1],
        INTERIM,
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_bytes_that_can_be_read_in_two_ways_are_not_read(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_response(raw)


@given(st.data(), st.sampled_from([OK, CHUNKED, CLOSES, INTERIM + OK]))
def test_it_does_not_matter_how_the_bytes_arrive(data: st.DataObject, raw: bytes) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    reader = ResponseReader()
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        assert reader.response is None
        reader.feed(raw[start:end])
    assert reader.response == read_response(raw)
    assert reader.ends_connection is (raw == CLOSES)


def test_a_response_is_its_last_one() -> None:
    assert read_response(INTERIM + CHUNKED) == Response(201, {"transfer-encoding": "chunked"}, b'{"id": "r"}')
