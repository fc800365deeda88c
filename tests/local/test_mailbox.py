"""The demo mailbox as its users meet it: a real process, real sockets, a real kill."""

import json
import signal
import smtplib
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from config.embedded import Home

ROOT = Path(__file__).resolve().parents[2]


class Mailbox:
    """One running mailbox over the journal in a folder."""

    def __init__(self, home: Home, delay: float = 0.0) -> None:
        self.journal = home.path / "mail.jsonl"
        self.smtp, self.pages = home.port("smtp"), home.port("pages")
        ports = ["--smtp-port", str(self.smtp), "--http-port", str(self.pages)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.mailbox", *ports, "--journal", self.journal, "--delay", str(delay)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                self.count()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the mailbox did not come up")

    def get(self, path: str, host: str | None = None) -> tuple[int, str, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.pages}{path}", headers={"Host": host} if host else {})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def count(self) -> dict[str, Any]:
        counts: dict[str, Any] = json.loads(self.get("/count")[1])
        return counts

    def lookup(self, message_id: str) -> tuple[int, dict[str, str]]:
        code, body, _ = self.get("/lookup?" + urllib.parse.urlencode({"message_id": message_id}))
        return code, json.loads(body)

    def send(self, to: str, message_id: str = "<1@test>", subject: str = "Hello", text: str = "Body") -> str:
        """The words that came with the 250."""
        with smtplib.SMTP("127.0.0.1", self.smtp, timeout=20) as client:
            client.ehlo("localhost")
            client.mail("agent@example.test")
            client.rcpt(to)
            head = f"Message-ID: {message_id}\r\nSubject: {subject}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
            code, words = client.data((head + text).encode())
        assert code == 250
        return words.decode()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


@pytest.fixture
def home(place: Path) -> Iterator[Home]:
    opened = Home.open(place, servers=False)
    yield opened
    opened.close()


@pytest.fixture
def start(home: Home) -> Iterator[Callable[..., Mailbox]]:
    """Starts a mailbox; all that were started end with the test."""
    started: list[Mailbox] = []

    def one(delay: float = 0.0) -> Mailbox:
        started.append(Mailbox(home, delay))
        return started[-1]

    yield one
    for mailbox in started:
        mailbox.process.kill()
        mailbox.process.wait()


def test_the_answer_names_the_message_that_the_look_up_finds(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    words = mailbox.send("ana@example.test", "<one@test>")
    code, found = mailbox.lookup("<one@test>")
    assert code == 200
    assert words == f"2.0.0 Ok: queued as {found['id']}"
    assert (found["to"], found["message_id"]) == ("ana@example.test", "<one@test>")
    assert set(found) == {"id", "message_id", "to", "received_at"}


def test_a_look_up_of_what_never_came_is_a_miss(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    mailbox.send("ana@example.test", message_id="")
    assert mailbox.lookup("<never@test>")[0] == 404
    assert mailbox.lookup("")[0] == 404


def test_a_message_is_in_the_journal_before_the_250(start: Callable[..., Mailbox]) -> None:
    mailbox = start(delay=600)
    with smtplib.SMTP("127.0.0.1", mailbox.smtp, timeout=20) as client:
        client.ehlo("localhost")
        client.mail("agent@example.test")
        client.rcpt("ana@example.test")
        client.putcmd("data")
        assert client.getreply()[0] == 354
        client.send(b"Message-ID: <held@test>\r\n\r\nBody\r\n.\r\n")
        deadline = time.monotonic() + 20
        while not mailbox.lines() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [line["message_id"] for line in mailbox.lines()] == ["<held@test>"]
        assert client.sock
        client.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.sock.recv(1)
        mailbox.stop(signal.SIGKILL)
        client.close()


def test_an_acknowledged_message_outlives_a_kill(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    words = mailbox.send("ana@example.test", "<kept@test>")
    mailbox.stop(signal.SIGKILL)
    again = start()
    assert again.lookup("<kept@test>")[1]["id"] == words.split()[-1]
    assert again.count()["by_recipient"] == {"ana@example.test": 1}


def test_a_line_that_a_crash_cut_short_is_taken_off(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    mailbox.send("ana@example.test", "<whole@test>")
    mailbox.stop(signal.SIGKILL)
    with mailbox.journal.open("a") as journal:
        journal.write('{"id": "CUT", "recipients": ["bob@exam')
    again = start()
    again.send("charlie@example.test", "<next@test>")
    assert [line["message_id"] for line in again.lines()] == ["<whole@test>", "<next@test>"]
    assert again.count()["messages"] == 2


def test_counts_go_by_the_envelope_and_not_by_what_the_message_says(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    mailbox.send("ana@example.test", "<a@test>")
    mailbox.send("ana@example.test", "<b@test>")
    mailbox.send("bob@example.test", "<b@test>")
    assert mailbox.count() == {
        "messages": 3,
        "recipients": 2,
        "twice": ["ana@example.test"],
        "by_recipient": {"ana@example.test": 2, "bob@example.test": 1},
    }


def test_senders_wait_for_a_slow_answer_side_by_side(start: Callable[..., Mailbox]) -> None:
    mailbox = start(delay=1.0)
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: mailbox.send(f"p{n}@example.test", f"<{n}@test>"), range(8)))
    took = time.monotonic() - began
    assert 1.0 <= took < 8.0  # one after the other would take eight
    assert mailbox.count()["recipients"] == 8


def test_nothing_in_a_message_becomes_markup(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    bad = "<script>alert(1)</script>"
    words = mailbox.send("ana@example.test", f"<{bad}@test>", subject=bad, text=bad)
    for path in ("/", f"/messages/{words.split()[-1]}"):
        code, body, headers = mailbox.get(path)
        assert code == 200
        assert "<script" not in body
        assert "&lt;script&gt;" in body
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")


def test_bytes_that_are_no_text_are_kept_and_shown(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    with smtplib.SMTP("127.0.0.1", mailbox.smtp, timeout=20) as client:
        client.sendmail("a@example.test", ["ana@example.test"], b"Subject: \xff\xfe\r\nContent-Type: x; y=\xff\r\n\r\n\xff")
    assert "base64" in mailbox.lines()[0]
    assert mailbox.get("/")[0] == 200
    assert mailbox.get(f"/messages/{mailbox.lines()[0]['id']}")[0] == 200


def test_a_site_that_points_its_name_here_reads_nothing(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    mailbox.send("ana@example.test")
    code, body, _ = mailbox.get("/", host="evil.example")
    assert code == 403
    assert "ana@" not in body


def test_the_list_shows_the_newest_first_fifty_a_page(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    with smtplib.SMTP("127.0.0.1", mailbox.smtp, timeout=20) as client:
        for n in range(51):
            client.sendmail("a@example.test", [f"p{n:02}@example.test"], f"Subject: number {n:02}\r\n\r\n".encode())
    first, second = mailbox.get("/")[1], mailbox.get("/?page=2")[1]
    assert first.index("number 50") < first.index("number 49")
    assert "number 00" not in first
    assert "number 00" in second
    assert mailbox.get("/?page=x")[0] == 400


def test_a_stop_is_orderly_and_a_busy_port_is_said_in_one_sentence(start: Callable[..., Mailbox]) -> None:
    mailbox = start()
    ports = ["--smtp-port", str(mailbox.smtp), "--http-port", str(mailbox.pages)]
    second = subprocess.run(
        [sys.executable, "-m", "config.mailbox", *ports, "--journal", mailbox.journal.with_name("other")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert second.stderr.startswith("The mailbox cannot start: ")
    assert second.stderr.count("\n") == 1
    assert mailbox.stop() == 0
