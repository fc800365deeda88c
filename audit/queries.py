"""What pages ask of the record."""

from django.db.models import FETCH_RAISE, Q, QuerySet

from accounts.paging import Page, page_of, stretch_of
from audit.models import Entry


def entries(workspace_id: int, *, act: str = "", person: str = "", kind: str = "", number: int | None = None) -> QuerySet[Entry]:
    """Entries of one workspace. `act` and `person` are parts of the words; `kind` and `number` name what was acted on."""
    return _of_workspace(workspace_id).filter(_narrowed(act, person, kind, number))


def page(
    workspace_id: int, *, after: int | None, act: str = "", person: str = "", kind: str = "", number: int | None = None
) -> tuple[Page[Entry], bool]:
    """A page of these entries, newest first; and whether it ends because a stretch was looked through rather than the record."""
    rows, wanted = _of_workspace(workspace_id), _narrowed(act, person, kind, number)
    if act or person or (number is not None and not kind):  # no index leads to these
        return stretch_of(rows, wanted, after=after)
    return page_of(rows.filter(wanted), after=after), False


def _of_workspace(workspace_id: int) -> QuerySet[Entry]:
    return Entry.objects.filter(workspace_id=workspace_id).fetch_mode(FETCH_RAISE)


def _narrowed(act: str, person: str, kind: str, number: int | None) -> Q:
    wanted = Q()
    if act:
        wanted &= Q(act__icontains=act)
    if person:
        wanted &= Q(actor_name__icontains=person)
    if kind:
        wanted &= Q(object_kind=kind)
    if number is not None:
        wanted &= Q(object_id=number)
    return wanted


def of_object(workspace_id: int, kind: str, number: int) -> list[Entry]:
    """What people did to one thing, oldest first."""
    return list(entries(workspace_id, kind=kind, number=number).order_by("id")[:200])
