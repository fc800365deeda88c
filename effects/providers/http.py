"""Any HTTP service that takes one POST for one effect and answers with a receipt.

Reply table: `faults.md` part 2 of the design papers, repeated in `docs/ledger.md`. The raw reply is the status line, the headers
and the body as received.
"""

import email.utils
import json
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import quote

from effects.providers.base import Account, Answer, BadSettings, Capabilities, Delivery, Setting, Sighting
from effects.providers.lookups import ask, checked_url, follow, receipt_in
from effects.providers.responses import read_response
from effects.providers.wire import Wire, header_lines, path_of
from effects.verdicts import Reply, ReplyKind, Verdict, accepted, challenged, done, later, rejected, stranded, unknown

REFUSED = {400, 401, 403, 404, 405, 410, 413, 414, 415, 422, 451}
as_json = json.JSONEncoder(ensure_ascii=False).encode
OWN_HEADERS = ("content-type", "idempotency-key")


class Http:
    """POST to the channel's `url`, with `Idempotency-Key: <key>:<epoch>` and the channel's secrets as headers."""

    name: ClassVar[str] = "http"
    capabilities: ClassVar[Capabilities] = Capabilities(
        own_key=True, look_up="by key", definite="400, 401, 403 to 405, 410, 413 to 415, 422, 451 and 429", challenge=True
    )
    settings: ClassVar[dict[str, Setting]] = {
        "url": Setting(str, "", "where each effect is POSTed"),
        "lookup_url": Setting(str, "", "asked with {key} and {epoch} filled in: 200 with a receipt is proof"),
        "receipt_field": Setting(str, "id", "the field of the JSON answer that is the receipt"),
        "operation_url": Setting(str, "", "after a 202, asked with {operation} filled in until it says what became of it"),
        "operation_field": Setting(str, "operation_id", "the field of a 202's JSON that names the operation"),
        "operation_state_field": Setting(
            str, "status", "the field of the operation's JSON that says: succeeded, failed, or neither yet"
        ),
        "challenge_field": Setting(
            str, "", "the field of a 201's JSON that holds a challenge; only its answer completes what was created"
        ),
        "challenge_url": Setting(
            str, "", "where the challenge is answered, once: a POST of it as `challenge`; {challenge} is filled in"
        ),
        "challenge_within": Setting(float, 30.0, "seconds in which the challenge may be answered"),
    }

    preamble = 0.0

    def __init__(self, account: Account) -> None:
        self._account = account
        self._url = checked_url("url", account.settings["url"], account)
        self._path = path_of(self._url)
        self._lookup_url: str = account.settings["lookup_url"]
        if self._lookup_url and "{key}" not in checked_url("lookup_url", self._lookup_url, account):
            raise BadSettings("lookup_url must hold {key} (and may hold {epoch})")
        self._operation_url: str = account.settings["operation_url"]
        if self._operation_url and "{operation}" not in checked_url("operation_url", self._operation_url, account):
            raise BadSettings("operation_url must hold {operation}")
        self._challenge_url: str = account.settings["challenge_url"]
        if bool(self._challenge_url) != bool(account.settings["challenge_field"]):
            raise BadSettings(
                "challenge_field and challenge_url go together: the one names the challenge, the other where it is answered"
            )
        if self._challenge_url:
            checked_url("challenge_url", self._challenge_url, account)
        self.challenge_within: float = account.settings["challenge_within"]
        self._receipt_field: str = account.settings["receipt_field"]
        self._timeout: float = account.settings["timeout"]
        self._wires: dict[str, Wire] = {}
        for name in account.secrets:
            if name.lower() in OWN_HEADERS:
                raise BadSettings(f"a secret becomes a header of the same name, and {name} is Signoff's own")
        try:
            header_lines(account.secrets)
        except ValueError as error:
            raise BadSettings(f"a secret becomes a header of the same name, and {error}") from None

    async def send(self, delivery: Delivery) -> Reply:
        content = delivery.content
        body = {
            "to": content.to,
            "subject": content.subject,
            "text": content.text,
            "html": content.html,
            "payload": content.payload,
            "amount_minor": content.amount_minor,
            "metadata": {"key": delivery.key, "epoch": delivery.epoch, "attempt": delivery.attempt},
        }
        raw = await self._wire(self._url).exchange(
            "POST",
            self._path,
            head=f"Idempotency-Key: {delivery.key}:{delivery.epoch}\r\nContent-Type: application/json\r\n".encode("ascii"),
            body=as_json(body).encode(),
            seconds=self._timeout,
            not_after=delivery.not_after,
        )
        return Reply(ReplyKind.ANSWERED, raw)

    def read(self, reply: Reply) -> Verdict:
        try:
            response = read_response(reply.raw)
        except ValueError as error:
            return unknown(f"the reply is not HTTP: {error}")
        status, headers = response.status, response.headers
        if status in (200, 201):
            receipt = receipt_in(response.body, self._receipt_field)
            if challenge := self._challenge_in(response.body):
                return challenged(
                    f"HTTP {status}: created, and its challenge is to be answered", challenge=challenge, receipt=receipt
                )
            return done(receipt) if receipt else unknown(f"HTTP {status} without a readable {self._receipt_field!r}")
        if status == 202 and self._operation(reply):
            return accepted(f"HTTP 202: operation {self._operation(reply)}, decided later")
        if status == 429:
            return later("HTTP 429: too many calls", after=_seconds(headers.get("retry-after"), headers.get("date")), pauses=True)
        if status in REFUSED:
            return rejected(f"HTTP {status}: refused", pauses=status in (401, 403))
        return unknown(f"HTTP {status}: it may have happened")

    async def answer(self, challenge: str, *, not_after: float) -> Reply:
        url = self._challenge_url.replace("{challenge}", quote(challenge, safe=""))
        raw = await self._wire(url).exchange(
            "POST",
            path_of(url),
            head=b"Content-Type: application/json\r\n",
            body=as_json({"challenge": challenge}).encode(),
            seconds=self._timeout,
            not_after=not_after,
        )
        return Reply(ReplyKind.ANSWERED, raw)

    def read_answer(self, reply: Reply, answer: Reply) -> Verdict:
        created, response = read_response(reply.raw), read_response(answer.raw)
        receipt = receipt_in(response.body, self._receipt_field) or receipt_in(created.body, self._receipt_field)
        if response.status in (200, 201, 204):
            return (
                done(receipt, "its challenge was answered")
                if receipt
                else unknown("its challenge was answered, without a receipt")
            )
        if response.status in REFUSED | {429}:
            return stranded(f"HTTP {response.status}: created, and the answer to its challenge was refused", receipt=receipt)
        return unknown(f"HTTP {response.status} to the answer to its challenge: it may be complete")

    def can_look_up(self) -> bool:
        return bool(self._lookup_url or self._operation_url)

    async def look_up(self, key: str, epoch: int, reply: Reply | None = None) -> Sighting:
        if reply and (operation := self._operation(reply)):
            url = self._operation_url.replace("{operation}", quote(operation, safe=""))
            field, state_field = self._receipt_field, self._account.settings["operation_state_field"]
            return await follow(url, wire=self._wire(url), field=field, state_field=state_field, seconds=self._timeout)
        if not self._lookup_url:
            return Sighting(Answer.INCONCLUSIVE, raw=b"there is no lookup_url, and the reply names no operation")
        if epoch and "{epoch}" not in self._lookup_url:
            return Sighting(Answer.INCONCLUSIVE, raw=b"lookup_url does not tell epochs apart: it has no {epoch}")
        url = self._lookup_url.replace("{key}", quote(key, safe="")).replace("{epoch}", str(epoch))
        return await ask(url, wire=self._wire(url), field=self._receipt_field, seconds=self._timeout)

    def _challenge_in(self, body: bytes) -> str:
        """The challenge that came with what was created, or nothing."""
        return receipt_in(body, self._account.settings["challenge_field"]) if self._challenge_url else ""

    def _operation(self, reply: Reply) -> str:
        """The operation that a 202 names, or nothing: then nobody can be asked what became of it."""
        if not self._operation_url or reply.kind is not ReplyKind.ANSWERED:
            return ""
        try:
            response = read_response(reply.raw)
        except ValueError:
            return ""
        return receipt_in(response.body, self._account.settings["operation_field"])[:200] if response.status == 202 else ""

    async def close(self) -> None:
        for wire in self._wires.values():
            await wire.close()
        self._wires.clear()

    def _wire(self, url: str) -> Wire:
        """The connections to the origin of `url`; the sender's and the look-up's are seldom the same."""
        scheme, _, rest = url.partition("://")
        origin = f"{scheme}://{rest.partition('/')[0]}"
        if origin not in self._wires:
            self._wires[origin] = Wire(url, headers=self._account.secrets, loopback=self._account.loopback)
        return self._wires[origin]


def _seconds(retry_after: str | None, date: str | None) -> float | None:
    """`Retry-After` in seconds: a number, or an HTTP date. Anything odd is as if it were not there.

    A date counts from the `Date` of the same reply, so that it means the same whenever it is read; without one, from now.
    """
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    moment = _moment(retry_after)
    return max(0.0, (moment - (_moment(date) or datetime.now(UTC))).total_seconds()) if moment else None


def _moment(http_date: str | None) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(http_date or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
