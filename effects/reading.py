"""From a kept reply to a verdict. Pure: the worker reads right after the commit, the sweeper after a crash, with one result."""

from dataclasses import replace

from effects.providers.base import Provider
from effects.verdicts import Reply, ReplyKind, Verdict, not_sent, rejected, storable, unknown


def verdict_of(reply: Reply, provider: Provider) -> Verdict:
    """What a reply means. A reply that cannot be read, or a receipt that cannot be kept as it came, is unknown, never a no."""
    verdict = _read(reply, provider)
    if verdict.receipt != storable(verdict.receipt):
        return unknown("the receipt holds characters that cannot be kept")
    reason = storable(verdict.reason)
    return verdict if reason == verdict.reason else replace(verdict, reason=reason)


def _read(reply: Reply, provider: Provider) -> Verdict:
    match reply.kind:
        case ReplyKind.ANSWERED:
            try:
                return provider.read(reply)
            except Exception as error:
                return unknown(f"the reply could not be read: {type(error).__name__}: {error}")
        case ReplyKind.LOST:
            return unknown(reply.note or "the call was made and not answered")
        case ReplyKind.NOT_SENT:
            return not_sent(reply.note or "nothing left this machine")
        case ReplyKind.WITHHELD:
            return rejected(reply.note or "stopped before the first byte")
