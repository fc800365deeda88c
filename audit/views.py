"""The record: every act of a person or a rule."""

import json
from typing import Any

from django import forms
from django.db import transaction
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.paging import STRETCH, cursor_of
from accounts.roles import Act
from audit import chain
from audit.chain import Actor
from audit.exports import as_csv
from audit.queries import entries, page

KINDS = ["plan", "effect", "channel", "pause", "workspace", "member", "token", "run", "rule"]
HEADER = [
    "number", "at", "who", "kind of actor", "address", "act", "on", "number of it", "name of it", "reason", "before",
    "after", "digest",
]  # fmt: skip


class SearchForm(forms.Form):
    """The record's filter; it lives in the address."""

    act = forms.CharField(required=False, max_length=60)
    person = forms.CharField(required=False, max_length=200)
    kind = forms.ChoiceField(required=False, choices=[("", "anything"), *((kind, kind) for kind in KINDS)])
    number = forms.IntegerField(required=False, min_value=0, max_value=2**62)

    @property
    def search(self) -> dict[str, Any]:
        """The filter; a part that makes no sense narrows nothing."""
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}


@require_safe
@door(Act.READ)
def audit(request: Visit) -> HttpResponse:
    """Who did what, to what, when and why; newest first."""
    form = SearchForm(request.GET)
    found, stretched = page(request.membership.workspace_id, **form.search, after=cursor_of(request.GET.get("after")))
    template = "audit.html#entries" if request.htmx.target == "entries" else "audit.html"
    return render(request, template, {"form": form, "page": found, "stretched": stretched, "stretch": STRETCH})


@require_safe
@door(Act.EXPORT)
def audit_export(request: Visit) -> HttpResponseBase:
    """What the filter shows, as CSV, oldest first; that somebody took it away stands in the record too."""
    search = SearchForm(request.GET).search
    workspace, person = request.membership.workspace, request.user
    by = Actor("human", person.pk, f"{person} <{person.email}>", str(request.META.get("REMOTE_ADDR", "")))
    with transaction.atomic():
        on = ("workspace", workspace.pk, workspace.name)
        chain.append("record exported", workspace_id=workspace.pk, by=by, on=on, after=search)
    rows = entries(workspace.pk, **search).order_by("id").iterator(chunk_size=2000)
    return as_csv(
        f"{workspace.slug}-record.csv",
        HEADER,
        (
            [
                entry.pk, entry.at.isoformat(), entry.actor_name, entry.actor_kind, entry.address, entry.act,
                entry.object_kind, entry.object_id, entry.object_name, entry.reason,
                json.dumps(entry.before, ensure_ascii=False), json.dumps(entry.after, ensure_ascii=False), entry.digest,
            ]
            for entry in rows
        ),
    )  # fmt: skip
