"""What pages ask of the record."""

from django.db.models import FETCH_RAISE, Q, QuerySet

from audit.models import Entry


def entries(workspace_id: int, *, act: str = "", person: str = "", kind: str = "", number: int | None = None) -> QuerySet[Entry]:
    """Entries of one workspace. `act` and `person` are parts of the words; `kind` and `number` name what was acted on."""
    rows = Entry.objects.filter(workspace_id=workspace_id).fetch_mode(FETCH_RAISE)
    wanted = Q()
    if act:
        wanted &= Q(act__icontains=act)
    if person:
        wanted &= Q(actor_name__icontains=person)
    if kind:
        wanted &= Q(object_kind=kind)
    if number is not None:
        wanted &= Q(object_id=number)
    return rows.filter(wanted)


def of_object(workspace_id: int, kind: str, number: int) -> list[Entry]:
    """What people did to one thing, oldest first."""
    return list(entries(workspace_id, kind=kind, number=number).order_by("id")[:200])
