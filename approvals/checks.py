"""What a reviewer should know before reading a plan: checks over all rows, run once, on submit.

Letters are read in one stream; what concerns several rows at once is asked of the database as a set.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from approvals.letters import faults_of, is_empty, skeleton
from approvals.models import Plan, Row
from effects.statements import read_statements

SHOWN = 20  # positions told of one check
AT_A_TIME = 100  # letters in memory: each may be a megabyte

SQL = read_statements(Path(__file__).parent / "sql" / "checks.sql")

# code: (does it stop approval, in words for whoever reviews). In the order in which they are shown.
CHECKS: dict[str, tuple[bool, str]] = {
    "empty_letter": (True, "has nothing in it: no text, no HTML, no payload."),
    "missing_subject": (True, "has no subject."),
    "line_break_in_subject": (True, "has a line break in its subject, which mail does not allow."),
    "unresolved_placeholder": (True, "still holds a placeholder, such as {{ name }} or [NAME], that was never filled in."),
    "duplicate_target": (True, "asks for the same thing to be sent to the same target as another row."),
    "near_empty_letter": (False, "has almost nothing in it: fewer than ten characters to read."),
    "plus_tag_pair": (False, "is possibly the same person as another row: the addresses differ only by a +tag."),
    "look_alike_pair": (False, "is possibly the same person as another row: the addresses look alike but differ."),
    "invisible_characters": (False, "holds characters that cannot be seen, or that change the order in which text is read."),
    "link_text_names_another_host": (False, "has a link whose text names another site than the one it leads to."),
    "already_done": (False, "was done before: the target is covered already, and nothing more will be sent to it."),
    "already_unknown": (False, "was tried before and nobody knows yet how it ended: the row waits until that is settled."),
    "opted_out": (False, "is for a target that opted out: it stays in the list as left out, and nothing is sent to it."),
    "oversize": (False, "is so large that mail programs will cut it off."),
}


@dataclass
class Finding:
    """The rows that one check concerns: how many, and the first of them."""

    count: int = 0
    positions: list[int] = field(default_factory=list)

    def add(self, position: int) -> None:
        self.count += 1
        if len(self.positions) < SHOWN:
            self.positions.append(position)


def run(plan: Plan) -> list[dict[str, Any]]:
    """What was found, as `[{code, blocking, text, count, positions}]`; positions are the first twenty. Empty: all is well."""
    findings = _read_letters(plan)
    with connection.cursor() as cursor:
        for code in ("duplicate_target", "plus_tag_pair", "already_done", "already_unknown", "opted_out"):
            cursor.execute(SQL[code], {"plan_id": plan.pk})
            count, positions = cursor.fetchone()
            findings[code] = Finding(count, positions or [])
        findings["look_alike_pair"] = _look_alikes(cursor, plan)
    return [_told(code, findings[code]) for code in CHECKS if findings[code].count]


def _told(code: str, finding: Finding) -> dict[str, Any]:
    blocking, words = CHECKS[code]
    subject = f"Row {finding.positions[0]}" if finding.count == 1 else f"{finding.count:,} rows: each"
    return {
        "code": code,
        "blocking": blocking,
        "text": f"{subject} {words}",
        "count": finding.count,
        "positions": finding.positions,
    }


def _read_letters(plan: Plan) -> defaultdict[str, Finding]:
    findings: defaultdict[str, Finding] = defaultdict(Finding)
    is_mail = plan.channel.provider == "smtp"
    letters = Row.objects.filter(plan=plan).order_by("position")
    columns = ("position", "subject", "text", "html", "payload", "amount_minor")
    for position, subject, text, html, payload, amount_minor in letters.values_list(*columns).iterator(chunk_size=AT_A_TIME):
        faults = set(faults_of(subject, text, html, payload))
        if is_mail and is_empty(text, html):
            faults.add("empty_letter")  # a mail cannot carry a payload
        elif amount_minor is not None and not is_mail:
            faults -= {"empty_letter", "near_empty_letter"}  # an amount to a target is an effect without words
        if is_mail and not subject.strip():
            faults.add("missing_subject")
        for code in faults:
            findings[code].add(position)
    return findings


def _look_alikes(cursor: CursorWrapper, plan: Plan) -> Finding:
    """Targets of different spelling that look the same. Only those with unusual letters can look like another."""
    cursor.execute(SQL["unusual_targets"], {"plan_id": plan.pk})
    seen: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for position, target in cursor.fetchall():
        seen[skeleton(target)][position] = target
    if not seen:
        return Finding()
    cursor.execute(SQL["positions_of_targets"], {"plan_id": plan.pk, "targets": list(seen)})
    for position, target in cursor.fetchall():
        seen[target][position] = target
    finding = Finding()
    alike = (group for group in seen.values() if len(set(group.values())) > 1)
    for position in sorted(position for group in alike for position in group):
        finding.add(position)
    return finding
