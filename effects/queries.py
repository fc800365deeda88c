"""What pages ask of the ledger. Every list takes a constant number of queries, whatever its length."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import FETCH_RAISE, F, Prefetch, Q, QuerySet
from django.db.models.functions import Now

from accounts.paging import SIZE, Page, page_of, stretch_of
from effects.models import Callback, Channel, Effect, Epoch, LookUp, Pause
from effects.news import Outcome
from effects.pausing import EVERYTHING, in_force, of_channel, of_workspace
from effects.states import BLOCKING, State

MANY = 1_000  # counts on pages stop here: an exact count of a large ledger takes a second
LISTED = (
    "key", "epoch", "attempt", "state", "tool", "target", "amount_minor", "plan_id", "run_id", "reason", "receipt",
    "reserved_at", "settled_at", "retry_at", "workspace_id", "channel__slug", "superseded_by_id",
)  # fmt: skip


@dataclass(frozen=True)
class Search:
    """What somebody looks for in the ledger; empty parts do not narrow it."""

    state: str = ""
    target: str = ""
    key: str = ""
    channel: str = ""
    plan: int | None = None
    run: str = ""

    @property
    def is_indexed(self) -> bool:
        """True when an index leads straight to the rows."""
        open_state = self.state in BLOCKING - {State.DONE}
        narrow = bool(self.key or self.plan or self.run or open_state)
        return narrow or not (self.target or self.channel or self.state)


def ledger(workspace_id: int, search: Search, *, after: int | None) -> tuple[Page[Effect], bool]:
    """A page of effects, newest first; and whether it ends because a stretch was looked through rather than the ledger."""
    rows, wanted = _listed(workspace_id), _narrowed(search)
    if search == Search(plan=search.plan, state=search.state) and search.plan:
        wanted = Q(pk__in=_newest_of_plan(search.plan, search.state, after))
    if search.is_indexed:
        return page_of(rows.filter(wanted), after=after), False
    return stretch_of(rows, wanted, after=after)


def _newest_of_plan(plan: int, state: str, after: int | None) -> list[int]:
    """The next effects of one plan, found in the index that knows their state. The `+ 0` keeps the database from walking the whole
    ledger back to an old plan instead, in the hope of meeting its effects soon.
    """
    rows = Effect.objects.filter(plan_id=plan, **({"state": state} if state else {}))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return list(rows.order_by((F("pk") + 0).desc()).values_list("pk", flat=True)[: SIZE + 1])


def _listed(workspace_id: int) -> QuerySet[Effect]:
    rows = Effect.objects.filter(workspace_id=workspace_id).select_related("channel").only(*LISTED)
    return rows.fetch_mode(FETCH_RAISE)


def _narrowed(search: Search) -> Q:
    exact = {"state": search.state, "key": search.key, "channel__slug": search.channel, "run_id": search.run}
    wanted = Q(**{name: value for name, value in exact.items() if value})
    if search.plan:
        wanted &= Q(plan_id=search.plan)
    if search.target:
        wanted &= Q(target__icontains=search.target)
    return wanted


def attempts(effect: Effect) -> list[Effect]:
    """Every attempt at this key, in every epoch, newest first."""
    rows = Effect.objects.filter(workspace_id=effect.workspace_id, key=effect.key)
    return list(rows.only(*LISTED).select_related("channel").order_by("-epoch", "-attempt")[:100])


def epochs_of(effect: Effect) -> list[Epoch]:
    """The epochs that people opened for this key, newest first."""
    rows = Epoch.objects.filter(workspace_id=effect.workspace_id, key=effect.key)
    return list(rows.select_related("opened_by").order_by("-epoch")[:100])


@dataclass(frozen=True)
class Case:
    """One effect on the desk, with what the provider said when it was asked."""

    effect: Effect
    look_ups: list[LookUp]
    callbacks: list[Callback] = field(default_factory=list)  # what it told later, newest first

    @property
    def answers(self) -> list[tuple[str, int]]:
        """How often each answer came."""
        said = [look_up.answer for look_up in self.look_ups]
        return [(answer, said.count(answer)) for answer in sorted(set(said))]


def cases(workspace_id: int, state: State, *, after: int | None = None) -> Page[Case]:
    """Effects in `state` that wait for a person, oldest first."""
    page = page_of(_cases(workspace_id).filter(state=state), after=after, by="pk", size=SIZE // 2)
    return Page([_case(effect) for effect in page.rows], page.more, page.first)


def case(workspace_id: int, pk: int) -> Case | None:
    """One effect as the desk shows it, in whatever state it is now."""
    found = _cases(workspace_id).filter(pk=pk).first()
    return _case(found) if found else None


def _cases(workspace_id: int) -> QuerySet[Effect]:
    asked = Prefetch("look_ups", LookUp.objects.defer("raw").order_by("-id"), to_attr="asked")
    told = Prefetch("callbacks", Callback.objects.defer("raw").order_by("-id"), to_attr="told")
    rows = Effect.objects.filter(workspace_id=workspace_id).defer("kept_reply__raw")
    return rows.select_related("channel", "kept_reply").prefetch_related(asked, told).fetch_mode(FETCH_RAISE)


def _case(effect: Effect) -> Case:
    return Case(effect, effect.asked, effect.told)  # type: ignore[attr-defined]


def open_counts(workspace_id: int) -> dict[str, int]:
    """How many effects wait for a person, by state (at most MANY each)."""
    return {
        state.value: Effect.objects.filter(workspace_id=workspace_id, state=state).order_by()[:MANY].count()
        for state in (State.UNKNOWN, State.STRANDED)
    }


def waiting_since(workspace_id: int) -> dict[str, datetime | None]:
    """Since when the oldest unknown and the oldest stranded effect wait."""
    return {
        state.value: Effect.objects.filter(workspace_id=workspace_id, state=state)
        .order_by("pk")
        .values_list("settled_at", flat=True)
        .first()
        for state in (State.UNKNOWN, State.STRANDED)
    }


def news(workspace_id: int) -> QuerySet[Callback]:
    """Callbacks that contradict the ledger and that nobody has seen yet, oldest first."""
    rows = Callback.objects.filter(workspace_id=workspace_id, outcome=Outcome.CONTRARY.value, seen_at=None)
    return rows.order_by("pk").select_related("effect").defer("raw").fetch_mode(FETCH_RAISE)


def news_count(workspace_id: int) -> int:
    """How many of them wait (at most MANY)."""
    return news(workspace_id).select_related(None).order_by()[:MANY].count()


def callbacks_of(effect: Effect) -> list[Callback]:
    """What the provider told later of one effect, newest first."""
    return list(effect.callbacks.order_by("-id")[:100])


def pauses(workspace_id: int) -> list[Pause]:
    """Every pause in force in this workspace, and of everything, oldest first."""
    here = Q(workspace_id=workspace_id) | Q(workspace=None)
    rows = Pause.objects.filter(Q(until=None) | Q(until__gt=Now()), here, lifted_at=None)
    return list(rows.order_by("id")[:200])


def halts(workspace_id: int) -> list[Pause]:
    """The pauses in force that hold all of this workspace, oldest first: its own, and that of everything."""
    return list(in_force([of_workspace(workspace_id), EVERYTHING]))


def channels(workspace_id: int) -> QuerySet[Channel]:
    """The channels of a workspace, by name."""
    return Channel.objects.filter(workspace_id=workspace_id).order_by("slug")


def epochs(workspace_id: int, *, key: str = "", person: str = "") -> QuerySet[Epoch]:
    """Who opened which epoch, when and why; `person` is part of a name or an address."""
    rows = Epoch.objects.filter(workspace_id=workspace_id).select_related("opened_by", "supersedes")
    if key:
        rows = rows.filter(key=key)
    if person:
        rows = rows.filter(Q(opened_by__email__icontains=person) | Q(opened_by__name__icontains=person))
    return rows.fetch_mode(FETCH_RAISE)


def paused_channels(found: Iterable[Pause]) -> dict[int, list[Pause]]:
    """Pauses by the channel they hold."""
    held: dict[int, list[Pause]] = {}
    for pause in found:
        kind, _, number = pause.subject.partition(":")
        if kind == "channel":
            held.setdefault(int(number), []).append(pause)
    return held


def channels_held(workspace_id: int, found: Iterable[Pause]) -> dict[str, Channel]:
    """The channels that pauses hold, by the pause's subject."""
    held = paused_channels(found)
    return {of_channel(channel.pk): channel for channel in channels(workspace_id).filter(pk__in=held)}
