"""Epochs: who opened which, when and why."""

from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.paging import cursor_of, page_of
from accounts.roles import Act
from audit import chain
from audit.exports import as_csv
from effects import queries
from effects.doors import human_of

HEADER = ["epoch", "key", "target", "opened by", "address", "opened at", "reason", "supersedes effect", "its receipt"]


@require_safe
@door(Act.READ)
def epochs(request: Visit) -> HttpResponse:
    """Every epoch above 0, newest first."""
    key, person = request.GET.get("key", "").strip(), request.GET.get("person", "").strip()
    rows = queries.epochs(request.membership.workspace_id, key=key, person=person)
    page = page_of(rows, after=cursor_of(request.GET.get("after")))
    context = {"page": page, "key": key, "person": person}
    return render(request, "epochs.html#epochs" if request.htmx.target == "epochs" else "epochs.html", context)


@require_safe
@door(Act.EXPORT)
def epochs_export(request: Visit) -> HttpResponseBase:
    """All of them as CSV; that somebody took them away stands in the record."""
    workspace = request.membership.workspace
    with transaction.atomic():
        chain.append(
            "epochs exported", workspace_id=workspace.pk, by=human_of(request).actor,
            on=("workspace", workspace.pk, workspace.name),
        )  # fmt: skip
    rows = queries.epochs(workspace.pk).order_by("id").iterator(chunk_size=2000)
    return as_csv(
        f"{workspace.slug}-epochs.csv",
        HEADER,
        (
            [
                epoch.epoch, epoch.key, epoch.supersedes.target, epoch.opened_by.name, epoch.opened_by.email,
                epoch.opened_at.isoformat(), epoch.reason, epoch.supersedes_id, epoch.supersedes.receipt,
            ]
            for epoch in rows
        ),
    )  # fmt: skip
