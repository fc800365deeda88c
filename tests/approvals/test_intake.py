"""NDJSON and CSV as they really come: in pieces, with marks, breaks and quotes, and broken."""

import pytest

from approvals import intake
from approvals.incoming import NewRow
from approvals.intake import read_csv, read_ndjson


def told(items) -> list:
    """Rows as (line, target), errors as (line, field, error)."""
    return [(item.line, item.target) if isinstance(item, NewRow) else (item.line, item.field, item.error) for item in items]


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_ndjson_is_the_same_in_pieces_of_any_size(size):
    data = '\ufeff{"target": "ana"}\r\n\n  \n{"target": "bö"}\n{"target": "cy"}'.encode()
    assert told(read_ndjson(in_pieces(data, size))) == [(1, "ana"), (4, "bö"), (5, "cy")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_csv_is_the_same_in_pieces_of_any_size(size):
    data = '\ufefftarget,text\r\nana,"two\r\nlines"\r\n\r\n"bö ""b""",x\n,,\n\ncy,'.encode()
    items = list(read_csv(in_pieces(data, size)))
    assert told(items)[:2] == [(2, "ana"), (5, 'bö "b"')]
    assert told(items)[2:] == [(8, "cy")]
    assert items[0].text == "two\r\nlines"


def test_an_empty_file_has_no_rows():
    assert told(read_ndjson([])) == told(read_csv([])) == told(read_csv([b"\n\n"])) == []


def test_columns_come_in_any_order_and_empty_cells_are_fields_not_given():
    csv = b'amount_minor,payload,target,subject\n,"{""a"": 1}",ana,\n1999,,bo,Hi\n'
    one, other = read_csv([csv])
    assert (one.amount_minor, one.payload, one.subject) == (None, {"a": 1}, "")
    assert (other.amount_minor, other.payload, other.subject) == (1999, None, "Hi")


def test_a_header_that_does_not_fit_is_refused_by_name_and_nothing_is_read():
    items = told(read_csv([b"target,colour,text,text\nana,red,x,y\n"]))
    assert [(line, field) for line, field, _ in items] == [(1, "colour"), (1, "text")]
    assert told(read_csv([b"text\nhello\n"]))[0][:2] == (1, "target")


def test_a_line_with_too_few_or_too_many_cells_says_so():
    items = told(read_csv([b"target,text\nana\nbo,x,y\ncy,ok\n"]))
    assert items[0] == (2, "", "has 1 cells where the header line has 2")
    assert items[1] == (3, "", "has 3 cells where the header line has 2")
    assert items[2] == (4, "cy")


def test_a_quote_never_closed_says_where_it_began():
    *rows, error = told(read_csv([b'target,text\nana,ok\nbo,"never closed\nand on\n']))
    assert rows == [(2, "ana")]
    assert error[:2] == (3, "")
    assert "not CSV" in error[2]


def test_csv_that_is_no_utf8_says_where():
    *_, error = told(read_csv([b"target,text\nana,caf\xe9\nbo,x\n"]))
    assert error == (2, "", "is not UTF-8: byte 8 of the line cannot be read")


def test_a_cell_that_should_be_json_and_is_not():
    assert told(read_csv([b"target,payload\nana,{oops\n"])) == [(2, "payload", "is not JSON")]


def test_a_line_too_long_is_refused_and_the_next_one_read(monkeypatch):
    monkeypatch.setattr(intake, "LONGEST_LINE", 60)
    fits = b'{"target": "' + b"a" * (60 - 12 - 3) + b'"}\n'
    assert len(fits) == 60
    one_more, far_more = fits.replace(b'"}', b'a"}'), fits.replace(b'"}', b"a" * 500 + b'"}')
    items = told(read_ndjson(in_pieces(fits + one_more + far_more + b'{"target": "bo"}\n' + far_more.strip(), 7)))
    assert [item[0] for item in items] == [1, 2, 3, 4, 5]
    assert {item[1:] for item in (items[1], items[2], items[4])} == {("", "is longer than 60 bytes")}
    assert items[3] == (4, "bo")


def test_a_record_too_long_ends_the_csv(monkeypatch):
    monkeypatch.setattr(intake, "LONGEST_LINE", 40)
    *_, error = told(read_csv([b'target,text\nana,"' + b"line\n" * 20 + b'"\n']))
    assert error == (2, "", "is longer than 40 bytes")


@pytest.mark.parametrize(
    ("field", "most", "one"), [("subject", 998, "x"), ("text", 512_000, "x"), ("html", 512_000, "x"), ("text", 256_000, "é")]
)
def test_a_field_may_be_as_long_as_its_limit_and_no_longer(field, most, one):
    def line(length: int) -> bytes:
        return f'{{"target": "ana", "{field}": "{one * length}"}}'.encode()

    assert told(read_ndjson([line(most)])) == [(1, "ana")]
    assert told(read_ndjson([line(most + 1)]))[0][:2] == (1, field)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400", '"\\u0000"', '{"\\u0000": 1}', '["a\\u0000"]'])
@pytest.mark.parametrize("field", ["payload", "record"])
def test_json_that_no_database_keeps_is_refused(field, value):
    assert told(read_ndjson([f'{{"target": "ana", "{field}": {value}}}'.encode()]))[0][:2] == (1, field)


@pytest.mark.parametrize("line", [b"[1]", b'"x"', b"1", b"null", b'{"target": "\\ud800"}', b"[" * 5000])
def test_a_line_that_is_no_object_is_refused(line):
    ((number, field, _),) = told(read_ndjson([line]))
    assert (number, field) == (1, "")
