"""What a provider told later of one effect, in the words of the page: what it said, what became of that, and the bytes."""

from dataclasses import dataclass

from django.forms import Form

from effects import queries
from effects.forms import NewsForm
from effects.models import Callback, Effect
from effects.news import Kind, Outcome
from effects.states import State
from effects.transcripts import as_text

SAID: dict[str, str] = {
    Kind.DELIVERED: "Delivered",
    Kind.BOUNCED: "Came back (bounced)",
    Kind.REJECTED: "Refused by the provider",
}
PROVED: dict[str, str] = {
    Kind.DELIVERED: "That is proof that it arrived, so the effect became done.",
    Kind.REJECTED: "The provider had kept it waiting and decided against it, so the effect became failed.",
}
NEWS: dict[tuple[str, str], str] = {
    (State.DONE, Kind.BOUNCED): "The provider took it, and then it came back: this target has probably not got it.",
    (State.DONE, Kind.REJECTED): "The provider took it, and refused it afterwards: this target has probably not got it.",
    (
        State.FAILED,
        Kind.DELIVERED,
    ): "We had it as “did not happen”, and it did. If it was sent again since, this target got it twice.",
    (
        State.REVOKED,
        Kind.DELIVERED,
    ): "It was taken back here, and it arrived all the same. Another plan could reach this target twice.",
    (
        State.STRANDED,
        Kind.DELIVERED,
    ): "It was stuck at the provider, and now it arrived. Take it back only if you mean to send another.",
}


@dataclass(frozen=True)
class Late:
    """One callback as the page shows it; `raw` only for those who may read it, `form` only while it is news."""

    callback: Callback
    title: str
    became: str
    raw: str | None
    form: Form | None


def late(effect: Effect, *, may_read_raw: bool, typed: Form | None = None) -> list[Late]:
    """Every callback of this effect: what somebody has to see first, then the newest; `typed` is a form to give back as it was sent."""
    told = [
        Late(
            one,
            title_of(one.kind),
            became(one, effect),
            as_text(bytes(one.raw)) if may_read_raw else None,
            _form(one, typed) if one.is_news else None,
        )
        for one in queries.callbacks_of(effect)
    ]
    return sorted(told, key=lambda one: one.form is None)


def title_of(kind: str) -> str:
    """What the provider said, as a heading."""
    return SAID.get(kind, kind)


def became(one: Callback, effect: Effect) -> str:
    """What came of it, in a sentence."""
    match one.outcome:
        case Outcome.SETTLED:
            return PROVED.get(one.kind, "")
        case Outcome.AGREED:
            return "The ledger said the same already."
        case Outcome.REPEATED:
            return "The same was told before."
        case Outcome.CONTRARY:
            told = NEWS.get((effect.state, one.kind), "It contradicts the ledger.")
            return f"{told} The effect stays {effect.state}."
    if effect.state == State.PENDING:
        return "The call is still under way. This is looked at again once it has settled."
    if effect.state == State.UNKNOWN and one.kind == Kind.DELIVERED:
        return "It names no receipt, so it is no proof. It is here for whoever settles this effect."
    if effect.state == State.UNKNOWN:
        return "That settles nothing by itself: only a person may say that it did not happen. It is here for whoever does."
    return "It is looked at in a moment."


def _form(one: Callback, typed: Form | None) -> Form:
    if typed is not None and str(typed.data.get("callback")) == str(one.pk):
        return typed
    return NewsForm(initial={"callback": one.pk}, auto_id=f"news-{one.pk}-%s")
