"""A letter on screen: nothing of it runs, nothing is fetched, and what does not meet the eye is told."""

import re

import pytest
from django.test import Client

from approvals.money import amount_text
from approvals.previews import for_preview, is_hidden, link_of, look, pieces
from tests import world

EVIL = """<html><head><style>@import "https://x.example/a.css"; body{background:url(https://x.example/b.png)}</style></head>
<body background="https://x.example/c.png"><script>alert(1)</script><img src="https://x.example/d.gif" onerror="alert(2)">
<a href="javascript:alert(3)">https://acme.example</a><form action="https://x.example"><input name="password"></form>
<iframe src="https://x.example"></iframe><p style="background:url('https://x.example/e.png');color:red">Dear customer</p>
<svg><script>alert(4)</script></svg><meta http-equiv="refresh" content="0;url=https://x.example"><base href="https://x.example">
</body></html>"""


def a_letter() -> str:
    plan = world.a_proposed_plan([world.a_row(1, html=EVIL, payload=None)])
    return f"/acme/plans/{plan.pk}/rows/1/"


def test_the_frame_is_sandboxed_and_from_its_own_address(alice: Client) -> None:
    address = a_letter()
    html = alice.get(f"{address}?part=html").content.decode()
    frame = re.search(r"<iframe[^>]*>", html)
    assert frame
    assert re.search(r"\ssandbox\s", frame[0])
    assert f'src="{address}html/"' in frame[0]


def test_the_frame_has_its_own_policy(alice: Client) -> None:
    answer = alice.get(f"{a_letter()}html/")
    policy = {part.split()[0]: part.split()[1:] for part in answer["Content-Security-Policy"].split(";")}
    assert policy == {
        "default-src": ["'none'"], "style-src": ["'unsafe-inline'"], "img-src": ["data:"], "frame-ancestors": ["'self'"],
        "sandbox": [],
    }  # fmt: skip
    assert answer["X-Frame-Options"] == "SAMEORIGIN"


def test_nothing_in_the_frame_runs_or_leads_out(alice: Client) -> None:
    html = alice.get(f"{a_letter()}html/").content.decode()
    assert "Dear customer" in html
    for part in ("<script", "onerror", "<form", "<input", "<iframe", "x.example", "href", "http-equiv", "<svg", "alert("):
        assert part not in html, part


@pytest.mark.parametrize(
    "html",
    [
        "<img src=x onerror=alert(1)>", "<a href='  javascript:alert(1)'>a</a>", "<style></style><script>1</script>",
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>", "<p style='x:expression(alert(1))'>a</p>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>", "<a href='data:text/html,<script>1</script>'>a</a>",
    ],
)  # fmt: skip
def test_what_runs_elsewhere_does_not_run_here(html: str) -> None:
    shown = for_preview(html)
    assert "<script" not in shown
    assert not re.search(r"<[^>]+\sonerror=", shown)
    assert "href" not in shown


def test_links_and_pictures_are_told(alice: Client) -> None:
    html = alice.get(a_letter()).content.decode()
    assert "remote" in html
    assert "javascript: only https, mailto and tel are expected" in html


def test_every_way_to_fetch_is_counted() -> None:
    assert [picture.rpartition("/")[2] for picture in look(EVIL).pictures] == [
        "a.css",
        "b.png",
        "c.png",
        "d.gif",
        "x.example",
        "e.png",
    ]


@pytest.mark.parametrize(
    ("href", "text", "host", "odd"),
    [
        ("https://acme.example/a", "acme.example", "acme.example", False),
        ("https://www.acme.example/a", "https://acme.example", "www.acme.example", False),
        ("https://evil.example/a", "See www.acme.example!", "evil.example", True),
        ("https://acme.example@evil.example/", "Log in", "evil.example", True),
        ("https://аcme.example/", "Log in", "xn--cme-5cd.example", True),
        ("https://xn--cme-5cd.example/", "Log in", "xn--cme-5cd.example", True),
        ("https://ACME。example/", "Log in", "acme.example", False),
        ("http://acme.example/", "Log in", "acme.example", True),
        ("mailto:a@acme.example", "Write to us", "", False),
        ("ftp://[broken", "x", "", True),
    ],
)
def test_a_link_shows_its_real_host(href: str, text: str, host: str, odd: bool) -> None:
    link = link_of(href, text)
    assert link.host == host
    assert bool(link.warnings) == odd, link.warnings


@pytest.mark.parametrize("character", "\u200b\u202e\u2066\u00ad\ufeff\u3164\u115f\u2800\ufe0f\U000e0041\u034f\x07\ue000\u2028")
def test_what_does_not_draw_is_marked(character: str) -> None:
    assert is_hidden(character)
    assert [piece.mark for piece in pieces(f"a{character}b")] == ["", f"U+{ord(character):04X}", ""]


@pytest.mark.parametrize("character", "a ä山ك\n\té€😀-'\u00a0")
def test_what_draws_is_not(character: str) -> None:
    assert not is_hidden(character)


def test_hidden_characters_are_shown_and_counted(alice: Client) -> None:
    plan = world.a_proposed_plan([world.a_row(1, subject="Free\u200b gift", text="Dear\u202e customer, your order has left.")])
    html = alice.get(f"/acme/plans/{plan.pk}/rows/1/").content.decode()
    assert "<strong>2</strong> characters do" in html
    assert "U+200B</mark>" in html
    assert "U+202E</mark>" in html


def test_it_leads_to_its_neighbours(alice: Client) -> None:
    plan = world.a_proposed_plan(3)
    html = alice.get(f"/acme/plans/{plan.pk}/rows/2/").content.decode()
    assert f"/acme/plans/{plan.pk}/rows/1/" in html
    assert f"/acme/plans/{plan.pk}/rows/3/" in html
    assert alice.get(f"/acme/plans/{plan.pk}/rows/4/").status_code == 404


def test_a_payload_and_its_amount_are_shown(alice: Client) -> None:
    row = world.NewRow(target="cus_1", amount_minor=123456, payload={"charge": "ch_1"})
    plan = world.a_proposed_plan([row], tool="refund", currency="EUR")
    html = alice.get(f"/acme/plans/{plan.pk}/rows/1/").content.decode()
    assert "1,234.56 EUR" in html
    assert "&quot;charge&quot;: &quot;ch_1&quot;" in html


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (199900, "EUR", "1,999.00"),
        (5, "EUR", "0.05"),
        (-5, "USD", "-0.05"),
        (1999, "JPY", "1,999"),
        (1, "KWD", "0.001"),
        (None, "EUR", ""),
    ],
)
def test_amounts_are_written_without_floats(minor: int | None, currency: str, text: str) -> None:
    assert amount_text(minor, currency) == text
