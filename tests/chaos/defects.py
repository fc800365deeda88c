"""Defects, planted into a process that works as a worker does, to see that the checker finds each: a test of the test.

`python -m tests.chaos.defects NAME SECONDS [PLAN …]` works on these plans (none: on all) and sweeps, without Celery. Every defect is one
function of the product put in the place of another, before the work begins; the product itself has no hooks for this.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def none() -> None:
    """The product as it is."""


def retry_on_500() -> None:
    """A 5xx is taken for a no that may pass."""
    from effects.providers.http import Http
    from effects.providers.responses import read_response
    from effects.verdicts import Reply, Verdict, later

    real = Http.read

    def read(self: Http, reply: Reply) -> Verdict:
        return later("HTTP 500: try again", after=0.5) if read_response(reply.raw).status >= 500 else real(self, reply)

    Http.read = read  # type: ignore[method-assign]


def claim_after_the_call() -> None:
    """The provider is called first, and what was called is reserved afterwards."""
    from effects import ledger, sending
    from effects.ledger import Claim, Won

    real = ledger.reserve
    replies: dict[str, Any] = {}
    at_work: list[sending.Sending] = []

    async def run(self: sending.Sending, run: Any = sending.Sending.run) -> Any:
        at_work[:] = [self]
        return await run(self)

    async def reserve(pen: Any, claims: list[Claim], **of: Any) -> list[Won]:
        for claim in claims:
            replies[claim.key] = await reply_of(at_work[0], Won(0, 1, claim), time.monotonic())
        return await real(pen, claims, **of)

    async def answered(self: sending.Sending, won: Won, claimed_at: float) -> Any:
        return replies[won.claim.key]

    reply_of = sending.Sending._reply
    sending.Sending.run = run  # type: ignore[method-assign, assignment]
    sending.Sending._reply = answered  # type: ignore[method-assign]
    sending.ledger.reserve = reserve  # type: ignore[assignment]


def loser_is_skipped() -> None:
    """A row that lost its key to a call under way counts as finished."""
    from approvals import dispatch

    dispatch.SQL["put_back"] = dispatch.SQL["put_back"].replace(
        "WHEN 'pending' THEN now() + make_interval(secs => %(soon)s)", "WHEN 'pending' THEN NULL"
    )


def failed_on_time_out() -> None:
    """A call that was not answered is taken for one that never was."""
    from effects import reading, sending
    from effects.verdicts import Reply, ReplyKind, Verdict, not_sent

    real = reading.verdict_of

    def verdict_of(reply: Reply, provider: Any) -> Verdict:
        return not_sent("timed out") if reply.kind is ReplyKind.LOST else real(reply, provider)

    sending.verdict_of = verdict_of


def parse_before_keep() -> None:
    """A reply is read when it comes, and kept in the commit that settles its row."""
    from effects import ledger, sending

    real = ledger.keep_and_settle

    async def keep_and_settle(pen: Any, *, replies: Any, verdicts: Any, **how: Any) -> None:
        read = [(id, sending.verdict_of(reply, providers[0])) for id, reply in replies]
        await real(pen, replies=replies, verdicts=read, **how)

    async def run(self: sending.Sending, run: Any = sending.Sending.run) -> Any:
        providers[:] = [self.provider]
        return await run(self)

    providers: list[Any] = []
    sending.Sending.run = run  # type: ignore[method-assign, assignment]
    sending.ledger.keep_and_settle = keep_and_settle  # type: ignore[assignment]


def no_look_before_the_first_byte() -> None:
    """Nobody looks at the age of the claim any more once it was reserved."""
    from effects import sending
    from effects.providers.base import Delivery, Lost, NotSent
    from effects.verdicts import Reply, ReplyKind

    async def reply(self: sending.Sending, won: Any, claimed_at: float) -> Reply:
        claim = won.claim
        try:
            return await self.provider.send(Delivery(claim.key, claim.epoch, won.attempt, claim.content))
        except NotSent as error:
            return Reply(ReplyKind.NOT_SENT, note=str(error))
        except Lost as error:
            return Reply(ReplyKind.LOST, raw=error.raw, note=str(error))

    sending.Sending._reply = reply  # type: ignore[method-assign]


def no_digest_before_the_first_byte() -> None:
    """What decorates a letter after the freeze goes out with it."""
    decorated()
    no_look_before_the_first_byte()


def process_wide_pause() -> None:
    """A provider that asks for rest is given the rest of the whole process."""
    from effects import sending

    until = [0.0]
    real = sending.Sending.run

    async def rest(self: sending.Sending, verdict: Any) -> None:
        until[0] = time.monotonic() + 30

    async def run(self: sending.Sending) -> int:
        return 0 if time.monotonic() < until[0] else await real(self)

    sending.Sending._rest = rest  # type: ignore[method-assign]
    sending.Sending.run = run  # type: ignore[method-assign]


DEFECTS: dict[str, Callable[[], None]] = {
    defect.__name__.replace("_", "-"): defect
    for defect in (
        none,
        retry_on_500,
        claim_after_the_call,
        loser_is_skipped,
        failed_on_time_out,
        parse_before_keep,
        no_look_before_the_first_byte,
        no_digest_before_the_first_byte,
        process_wide_pause,
    )
}


def hasty() -> None:
    """Shorter times between a reservation and the moment the sweeper may look: a scenario need not wait long."""
    from effects import ledger

    ledger.START_WITHIN, ledger.SLACK = 1.0, 0.3


def stopped_once() -> None:
    """The process stops itself (SIGSTOP) between its first reservation and the call; whoever watches lets it go on."""
    from effects import sending

    real = sending.Sending._call
    stops = [1]

    async def call(self: sending.Sending, won: Any, claimed_at: float) -> None:
        if stops:
            stops.clear()
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        await real(self, won, claimed_at)

    sending.Sending._call = call  # type: ignore[method-assign]


def decorated() -> None:
    """Something between the database and the wire adds a line to every letter, as a middleware might."""
    from dataclasses import replace

    from approvals import dispatch

    real = dispatch._Rows.__call__

    async def decorate(self: Any, most: int) -> Any:
        return [
            replace(claim, content=replace(claim.content, text=claim.content.text + "\nSent with love"))
            for claim in await real(self, most)
        ]

    dispatch._Rows.__call__ = decorate  # type: ignore[method-assign]


CIRCUMSTANCES = {"hasty": hasty, "stopped-once": stopped_once, "decorated": decorated}


def work(seconds: float, wanted: list[int]) -> None:
    """Take chunks and sweep, as worker and beat do, for so long."""
    from approvals.dispatch import work_on
    from approvals.models import Chunk
    from effects.sweeping import sweep
    from effects.workplace import here

    workplace, ends = here(), time.monotonic() + seconds
    print("at work", flush=True)
    while time.monotonic() < ends:
        due = Chunk.objects.exclude(due_at=None).order_by("id")
        for chunk_id in list((due.filter(plan_id__in=wanted) if wanted else due).values_list("id", flat=True)):
            workplace.run(work_on(chunk_id, workplace))
        workplace.run(sweep(workplace))
        time.sleep(0.1)


def main() -> None:
    """`NAME[,CIRCUMSTANCE …] SECONDS [PLAN …]`."""
    import django

    django.setup()
    name, *circumstances = sys.argv[1].split(",")
    for circumstance in circumstances:
        CIRCUMSTANCES[circumstance]()
    DEFECTS[name]()
    work(float(sys.argv[2]), [int(plan) for plan in sys.argv[3:]])


if __name__ == "__main__":
    main()
