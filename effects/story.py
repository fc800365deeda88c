"""One effect told in order: what was reserved, what was answered, who asked, who ruled."""

from dataclasses import dataclass, replace
from datetime import datetime

from effects.models import Challenge, Effect, Epoch, Event, KeptReply, LookUp
from effects.verdicts import ReplyKind

HEARD: dict[str, str] = {
    ReplyKind.ANSWERED: "The provider answered",
    ReplyKind.LOST: "The answer was lost on the way",
    ReplyKind.NOT_SENT: "Nothing left this machine",
    ReplyKind.WITHHELD: "Withheld before the first byte",
}
ANSWERED: dict[str, str] = {
    "": "Somebody began to answer its challenge",
    ReplyKind.ANSWERED: "Its challenge was answered",
    ReplyKind.LOST: "Its challenge was answered, and the reply was lost on the way",
    ReplyKind.NOT_SENT: "Its challenge was not answered: nothing left this machine",
}
ANSWERS = {
    "found": "The provider has it",
    "absent": "The provider does not find it",
    "inconclusive": "The provider could not say",
}


@dataclass(frozen=True)
class Moment:
    """One thing that happened: when, what in one sentence, by whom, and the particulars. `mark` names its icon."""

    at: datetime
    mark: str
    title: str
    by: str = ""
    text: str = ""
    evidence: str = ""
    times: int = 1  # the same answer again and again is one moment
    last: datetime | None = None


def story(effect: Effect, opened: list[Epoch]) -> list[Moment]:
    """Every moment of one effect, oldest first. Two queries, for the trail and the look-ups."""
    moments = [_reserved(effect)]
    if effect.reply:
        moments.append(_replied(effect.reply))
    if effect.answer:
        moments.append(_answered(effect.answer))
    moments += [_moved(event) for event in effect.events.order_by("id")[:200]]
    moments += [_asked(look_up) for look_up in effect.look_ups.defer("raw").order_by("-id")[:200]]
    moments += [_superseded(epoch) for epoch in opened if epoch.supersedes_id == effect.pk]
    return _folded(sorted(moments, key=lambda moment: moment.at))


def _reserved(effect: Effect) -> Moment:
    title = "Reserved, before the first byte left" if effect.attempt == 1 else f"Reserved again: attempt {effect.attempt}"
    return Moment(effect.reserved_at, "reserved", title, by=effect.worker)


def _replied(reply: KeptReply) -> Moment:
    title = HEARD.get(reply.kind, "The call ended")
    size = len(reply.raw)
    words = [f"{size:,} {'byte' if size == 1 else 'bytes'} kept" if size else "", reply.note]
    return Moment(reply.at, "reply", title, text="; ".join(filter(None, words)))


def _answered(answer: Challenge) -> Moment:
    return Moment(answer.kept_at or answer.begun_at, "reply", ANSWERED[answer.kind], by=answer.by, text=answer.note)


def _moved(event: Event) -> Moment:
    return Moment(event.at, event.after, f"Became {event.after}", by=event.by, text=event.reason, evidence=event.evidence)


def _asked(look_up: LookUp) -> Moment:
    title = ANSWERS.get(look_up.answer, look_up.answer)
    return Moment(look_up.at, f"look-up-{look_up.answer}", title, by=look_up.by, evidence=look_up.receipt)


def _superseded(epoch: Epoch) -> Moment:
    return Moment(epoch.opened_at, "epoch", f"Superseded: epoch {epoch.epoch} opened", by=str(epoch.opened_by), text=epoch.reason)


def _folded(moments: list[Moment]) -> list[Moment]:
    """Look-ups in a row with one answer, asked by one asker, told once with how often."""
    told: list[Moment] = []
    for moment in moments:
        before = told[-1] if told else None
        if before and before.mark.startswith("look-up") and (before.mark, before.by) == (moment.mark, moment.by):
            told[-1] = replace(before, times=before.times + 1, last=moment.at)
        else:
            told.append(moment)
    return told
