"""From a kept reply to a verdict. Pure: the worker reads right after the commit, the sweeper after a crash, with one result."""

from collections.abc import Callable
from dataclasses import replace

from effects.providers.base import Challenger, Provider
from effects.verdicts import Reply, ReplyKind, Verdict, not_sent, rejected, storable, stranded, unknown


def verdict_of(reply: Reply, provider: Provider) -> Verdict:
    """What a reply means. A reply that cannot be read, or a receipt that cannot be kept as it came, is unknown, never a no."""
    match reply.kind:
        case ReplyKind.ANSWERED:
            return _read(lambda: provider.read(reply))
        case ReplyKind.LOST:
            return _read(lambda: unknown(reply.note or "the call was made and not answered"))
        case ReplyKind.NOT_SENT:
            return _read(lambda: not_sent(reply.note or "nothing left this machine"))
        case ReplyKind.WITHHELD:
            return _read(lambda: rejected(reply.note or "stopped before the first byte"))


def verdict_of_answer(reply: Reply, answer: Reply, provider: Provider) -> Verdict:
    """What came of the one answer to the challenge in `reply`. Unanswered it is stranded; an answer that was lost may have completed it."""
    match answer.kind:
        case ReplyKind.ANSWERED if isinstance(provider, Challenger):
            return _read(lambda: provider.read_answer(reply, answer))
        case ReplyKind.NOT_SENT | ReplyKind.WITHHELD:
            receipt = verdict_of(reply, provider).receipt
            return _read(lambda: stranded(f"created, and its challenge was not answered: {answer.note}", receipt=receipt))
        case _:
            return _read(lambda: unknown(f"its challenge was answered, and the reply was lost: {answer.note}"))


def _read(read: Callable[[], Verdict]) -> Verdict:
    """The verdict, or unknown where it cannot be had or kept."""
    try:
        verdict = read()
    except Exception as error:
        verdict = unknown(f"the reply could not be read: {type(error).__name__}: {error}")
    if verdict.receipt != storable(verdict.receipt):
        return unknown("the receipt holds characters that cannot be kept")
    reason = storable(verdict.reason)
    return verdict if reason == verdict.reason else replace(verdict, reason=reason)
