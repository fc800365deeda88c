"""A hundred personal letters, as the shop's agent writes them: the same hundred at every start."""

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

FIRST = (
    "Amina", "Bjørn", "Chiara", "Dmitri", "Elif", "Fatou", "Goran", "Hanna", "Ines", "Jürgen",
    "Kaito", "Léa", "Mateo", "Niamh", "Oluwaseun", "Priya", "Quentin", "Rosa", "Søren", "Tereza",
)  # fmt: skip
LAST = ("Andersen", "Brandt", "Castro", "Dubois", "Eriksson")
BOOKS = (
    "The Lighthouse Keeper's Atlas", "A Short History of Tea", "Winter Gardens", "Maps of the Interior", "The Paper Sea",
    "Bread, Slowly", "Letters to a Young Beekeeper", "Nine Bridges", "The Quiet Machine", "Salt and Other Roads",
)  # fmt: skip
COLUMNS = ("target", "subject", "text", "html", "record")


class Customer(NamedTuple):
    """Somebody who ordered a book."""

    first: str
    last: str
    email: str
    book: str
    order: int


def customers() -> Iterator[Customer]:
    """Twenty first names with five last names each: a hundred people, each with an address of their own."""
    for n in range(100):
        first, last = FIRST[n % 20], LAST[n // 20]
        email = f"{_plain(first)}.{_plain(last)}@readers.example"
        yield Customer(first, last, email, BOOKS[(n * 7) % 10], 4_100 + n)


def letters() -> bytes:
    """The letters as a CSV file, with a header line."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS[:4])
    writer.writeheader()
    for customer in customers():
        writer.writerow(
            {
                "target": customer.email,
                "subject": f"{customer.first}, the new edition of “{customer.book}” is here",
                "text": _text(customer),
                "html": _html(customer),
            }
        )
    return file.getvalue().encode()


def _text(who: Customer) -> str:
    return (
        f"Dear {who.first} {who.last},\n\n"
        f"last year you ordered “{who.book}” from us (order {who.order}). A revised edition arrived this morning, with a new "
        f"foreword and the maps in colour, and I have put a copy aside for you until Saturday.\n\n"
        f"If you would like it, simply answer this letter. If not, do nothing: we will not write about it again.\n\n"
        f"Warm regards from the shop,\nMarit\nNordlicht Books, Harbour Street 4\n"
    )


def _html(who: Customer) -> str:
    return (
        f"<p>Dear {who.first} {who.last},</p>"
        f"<p>last year you ordered <em>{who.book}</em> from us (order {who.order}). A revised edition arrived this morning, with a "
        f"new foreword and the maps in colour, and I have put a copy aside for you until Saturday.</p>"
        f"<p>If you would like it, simply answer this letter. If not, do nothing: we will not write about it again.</p>"
        f"<p>Warm regards from the shop,<br>Marit<br>Nordlicht Books, Harbour Street 4</p>"
    )


def _plain(name: str) -> str:
    """A name as it stands in an address."""
    return name.lower().translate(str.maketrans("øéüö", "oeuo"))
