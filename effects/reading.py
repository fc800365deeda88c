"""From a kept reply to a verdict. Pure: the worker reads right after the commit, the sweeper after a crash, with one result."""

from effects.providers.base import Provider
from effects.verdicts import Reply, ReplyKind, Verdict, later, rejected, unknown


def verdict_of(reply: Reply, provider: Provider) -> Verdict:
    """What a reply means. A reply that cannot be read at all is unknown, never a no."""
    match reply.kind:
        case ReplyKind.ANSWERED:
            try:
                return provider.read(reply)
            except Exception as error:
                return unknown(f"the reply could not be read: {type(error).__name__}: {error}")
        case ReplyKind.LOST:
            return unknown(reply.note or "the call was made and not answered")
        case ReplyKind.NOT_SENT:
            return later(reply.note or "nothing left this machine")
        case ReplyKind.WITHHELD:
            return rejected(reply.note or "stopped before the first byte")
