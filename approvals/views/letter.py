"""One letter of a plan as its recipient will get it, with everything that does not meet the eye."""

import json
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.csp import CSP
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.csp import csp_override
from django.views.decorators.http import require_safe

from accounts.doors import Visit, door
from accounts.roles import Act
from approvals import queries
from approvals.models import Outcome, Plan, Recipient
from approvals.money import amount_text
from approvals.previews import compare, for_preview, is_hidden, look

# The frame's own policy: nothing is fetched, nothing runs, and only our own page may show it.
FRAME: dict[str, Any] = {
    "default-src": [CSP.NONE],
    "style-src": [CSP.UNSAFE_INLINE],
    "img-src": ["data:"],
    "frame-ancestors": [CSP.SELF],
    "sandbox": "",
}


@require_safe
@door(Act.READ)
def row(request: Visit, pk: int, position: int) -> HttpResponse:
    """The page of one letter; `part` chooses what is shown of it."""
    plan, found = _row_of(request, pk, position)
    context = {"plan": plan, **letter_of(plan, found, request.GET.get("part", ""))}
    return render(request, "plans/letter.html#letter" if request.htmx.target == "letter" else "plans/letter.html", context)


@require_safe
@xframe_options_sameorigin
@csp_override(FRAME)
@door(Act.READ)
def row_html(request: Visit, pk: int, position: int) -> HttpResponse:
    """The HTML of one letter for the sandboxed frame: cleaned, and kept from fetching anything by its own policy."""
    found = _row_of(request, pk, position)[1]
    page = f'<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light">{for_preview(found.html)}'
    return HttpResponse(page)


def letter_of(plan: Plan, row: Recipient, part: str) -> dict[str, Any]:
    """What the letter's card shows: the parts it has, the chosen one, its links, pictures and hidden characters."""
    was = queries.row_before(plan, row)
    parts = {
        "text": row.text,
        "html": row.html,
        "source": row.html,
        "payload": row.payload,
        "changes": was and f"version {plan.version - 1}",
        "record": row.record,
    }
    held = [name for name, value in parts.items() if value not in ("", None)] or ["text"]
    sight = look(row.html, row.text)
    return {
        "row": row,
        "parts": held,
        "part": part if part in held else held[0],
        "payload": _indented(row.payload),
        "record": _indented(row.record),
        "amount": amount_text(row.amount_minor, plan.currency),
        "strokes": compare(*map(_whole, (was, row))) if was and part == "changes" else [],
        "links": sight.links,
        "odd_links": sum(bool(link.warnings) for link in sight.links),
        "pictures": sight.pictures,
        "hidden": sum(map(is_hidden, row.target_typed + row.subject + row.text + row.html)),
        "previous": row.position - 1 if row.position > 1 else None,
        "next": row.position + 1 if row.position < plan.row_count else None,
    }


def _row_of(request: Visit, pk: int, position: int) -> tuple[Plan, Outcome]:
    plan = queries.plan_of(request.membership.workspace_id, pk)
    found = queries.row_of(plan, position) if plan else None
    if plan is None or found is None:
        raise Http404("no such row in this workspace")
    return plan, found


def _whole(row: Recipient) -> str:
    """Everything that is sent of a row, as one text to compare."""
    amount = "" if row.amount_minor is None else str(row.amount_minor)
    return "\n\n".join(filter(None, [row.subject, row.text, row.html, _indented(row.payload), amount]))


def _indented(value: Any) -> str:
    return "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)
