"""What is found on submit: each check on a letter that has the fault, and silence on one that only looks like it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import plans
from approvals.checks import CHECKS
from approvals.letters import faults_of, misleading_links, skeleton
from approvals.models import Plan
from tests.world import a_channel, a_draft, a_proposed_plan, a_row, a_token, a_workspace, an_effect, rows_of, some_rows

pytestmark = pytest.mark.django_db


def smtp():
    return a_channel(slug="post", provider="smtp")


def found(plan: Plan) -> dict[str, list[int]]:
    """Code: positions, of a proposed plan."""
    return {check["code"]: check["positions"] for check in plan.checks}


def test_good_letters_have_nothing_to_tell():
    assert a_proposed_plan(rows=5, channel=smtp()).checks == []


def test_a_check_says_what_how_many_and_where():
    plan = a_proposed_plan([a_row(n, text=f"Dear {{{{ name }}}}, hello number {n}.") for n in range(1, 31)])
    assert plan.checks == [
        {
            "code": "unresolved_placeholder",
            "blocking": True,
            "text": "30 rows: each still holds a placeholder, such as {{ name }} or [NAME], that was never filled in.",
            "count": 30,
            "positions": list(range(1, 21)),
        }
    ]


def test_one_row_is_named_by_its_number():
    plan = a_proposed_plan([a_row(1), a_row(2, text="Dear [NAME], hello to you.")])
    assert plan.checks[0]["text"].startswith("Row 2 still holds a placeholder")


def test_blocking_checks_come_first():
    flags = [blocking for blocking, _ in CHECKS.values()]
    assert flags == sorted(flags, reverse=True)


@pytest.mark.parametrize(
    "text",
    [
        "Dear {{ name }},",
        "Dear {{name",
        "Dear name}},",
        "{% if vip %}Dear you",
        "Dear [NAME],",
        "Dear [FIRST NAME],",
        "Dear [FIRST_NAME],",
        "Dear <<name>>,",
        "Dear << first name>>,",
        "Dear %FIRST_NAME%,",
        "Dear %NAME%,",
    ],
)
@pytest.mark.parametrize("part", ["subject", "text", "html", "payload"])
def test_an_unresolved_placeholder_is_found_in_every_part(text, part):
    whole = {"subject": "Hello", "text": "Dear customer, hello.", "html": "", "payload": None}
    assert "unresolved_placeholder" in faults_of(**(whole | {part: {"deep": [text]} if part == "payload" else text}))


@pytest.mark.parametrize(
    "text",
    [
        "[URGENT] the house is on fire",
        "Re: [ACME-42] your ticket",
        "see [1] and [a link](x) and [Ana]",
        "50% of A% and %C3%A9 and %20",
        "set {x} and [OK]",
        "[A] or [B]",
    ],
)
def test_what_only_looks_like_a_placeholder_is_let_through(text):
    assert "unresolved_placeholder" not in faults_of("Hello", text, "")


def test_braces_of_a_style_sheet_are_no_placeholder():
    html = "<html><STYLE>@media print{.x{color:red}}</STYLE><p>Dear customer</p><!-- {{ old }} --></html>"
    assert list(faults_of("Hello", "", html)) == []
    assert "unresolved_placeholder" in faults_of("Hello", "", html + "<p>{{ name }}</p>")


def test_an_escaped_placeholder_in_html_is_found():
    assert "unresolved_placeholder" in faults_of("Hello", "", "<p>Dear &lt;&lt;name&gt;&gt;, hello there</p>")


def test_an_empty_letter_blocks():
    plan = a_proposed_plan([a_row(1), a_row(2, text=""), a_row(3, text=" \n\t"), a_row(4, text="", payload={"a": 1})])
    assert found(plan) == {"empty_letter": [2, 3]}


def test_a_mail_cannot_live_on_a_payload():
    assert found(a_proposed_plan([a_row(1, text="", payload={"a": 1})], channel=smtp())) == {"empty_letter": [1]}


def test_a_refund_needs_no_words_but_a_mail_with_an_amount_does():
    row = a_row(1, text="", subject="", amount_minor=500)
    assert found(a_proposed_plan([row], currency="EUR", tool="refund")) == {}
    assert set(found(a_proposed_plan([row], currency="EUR", channel=smtp()))) == {"empty_letter", "missing_subject"}
    short = a_row(1, text="Hi.", amount_minor=500)
    assert set(found(a_proposed_plan([short], currency="EUR", channel=smtp()))) == {"near_empty_letter"}


@pytest.mark.parametrize(
    ("text", "html"),
    [("Hello.", ""), ("", "<p><b>Hi</b></p>"), ("123 456 789", ""), ("", "<style>.long{color:red}</style>&nbsp;")],
)
def test_a_nearly_empty_letter_warns(text, html):
    (check,) = a_proposed_plan([a_row(1, text=text, html=html)]).checks
    assert (check["code"], check["blocking"]) == ("near_empty_letter", False)


@pytest.mark.parametrize(("text", "html"), [("1234567890", ""), ("", "<p>Ten letters</p>"), ("Hi", "<p>Ten letters</p>")])
def test_ten_characters_are_enough(text, html):
    assert a_proposed_plan([a_row(1, text=text, html=html)]).checks == []


def test_a_mail_without_a_subject_blocks_and_another_tool_needs_none():
    assert found(a_proposed_plan([a_row(1), a_row(2, subject=" ")], channel=smtp())) == {"missing_subject": [2]}
    assert found(a_proposed_plan([a_row(1, subject="")])) == {}


def test_a_line_break_in_a_subject_blocks_even_when_it_came_in_by_another_way():
    plan = a_draft(rows=2)
    row = rows_of(plan)[1]
    row.subject = "Hello\nBcc: all@example.com"
    row.save()
    assert found(plans.submit(plan, token=plan.token)) == {"line_break_in_subject": [2]}


def test_the_same_target_in_two_loads_blocks():
    plan = a_draft(rows=3)
    plans.load(plan, [a_row(2)], token=plan.token)
    assert found(plans.submit(plan, token=plan.token)) == {"duplicate_target": [2, 4]}


def test_br_12_a_plus_tag_pair_is_possibly_one_person():
    targets = ["ana@example.com", "bo@example.com", "ana+news@example.com", "ana+x@example.com", "cy+a@example.com"]
    plan = a_proposed_plan([a_row(n, target=target) for n, target in enumerate(targets)])
    assert found(plan) == {"plus_tag_pair": [1, 3, 4]}
    assert not plan.checks[0]["blocking"]
    assert "possibly the same person" in plan.checks[0]["text"]


def test_br_12_a_look_alike_pair_is_possibly_one_person():
    targets = [
        "ana@example.com",
        "bo@example.com",
        "\u0430na@example.com",  # Cyrillic a
        "\u0430\u043d\u043d\u0430@example.com",  # a whole Cyrillic name that resembles nobody here
        "bo@ex\u0430mple.com",  # Cyrillic a in the domain: xn-- on the wire
    ]
    plan = a_proposed_plan([a_row(n, target=target) for n, target in enumerate(targets)])
    assert found(plan) == {"look_alike_pair": [1, 2, 3, 5]}
    assert not plan.checks[0]["blocking"]


def test_two_look_alikes_without_the_plain_one_are_a_pair_too():
    plan = a_proposed_plan([a_row(target="\u0430na@example.com"), a_row(target="\u03b1na@example.com")])
    assert found(plan) == {"look_alike_pair": [1, 2]}


def test_a_name_with_an_accent_resembles_nobody():
    assert skeleton("jos\u00e9@example.com") != skeleton("jose@example.com")
    assert skeleton("\uff21na@example.com") == "ana@example.com"


@pytest.mark.parametrize(
    "character", ["\u200b", "\u202e", "\u2066", "\u00ad", "\ufeff", "\u200f", "\U000e0041", "\x1b", "\x7f", "\u0085"]
)
def test_a_character_that_cannot_be_seen_warns(character):
    plan = a_proposed_plan([a_row(1), a_row(2, text=f"Dear cus{character}tomer, hello.")])
    assert found(plan) == {"invisible_characters": [2]}
    assert not plan.checks[0]["blocking"]


def test_accents_line_breaks_and_emoji_are_seen():
    assert found(a_proposed_plan([a_row(1, text="Liebe Zoë,\r\n\tviel Spaß 🎉 — 你好, مرحبا")])) == {}


LINKS_THAT_LIE = [
    '<a href="https://evil.example/x">https://bank.example/login</a>',
    '<a href="https://evil.example">bank.example</a>',
    "<A HREF='https://evil.example'>go to <b>www.bank.example</b> now</A>",
    "<a href=https://evil.example>BANK.example</a>",
    '<a href="https://bank.example.evil.example/">bank.example</a>',
    '<a href="https://bank.example@evil.example/">bank.example</a>',
    '<a title=">" href="https://evil.example/">bank.example</a>',
    '<a href="https://b&#97;nk.evil.example/">bank.example</a>',
    '<a href="mailto:help@evil.example">help@bank.example</a>',
    '<a href="https://b\u0430nk.example">bank.example</a>',
    '<a href="http://[broken">bank.example</a>',
    '<a href="x"><a href="https://evil.example">bank.example</a>',
]
LINKS_THAT_DO_NOT = [
    '<a href="https://bank.example/login">bank.example</a>',
    '<a href="https://www.bank.example/">https://bank.example/start</a>',
    '<a href="https://bank.example/">www.bank.example</a>',
    '<a href="https://login.bank.example/">bank.example</a>',
    '<a href="https://evil.example/">our shop</a>',
    '<a href="https://cdn.example/menu.pdf">menu.pdf</a>',
    '<a href="mailto:help@bank.example?subject=x">help@bank.example</a>',
    '<a href="https://xn--bcher-kva.example/">b\u00fccher.example</a>',
    '<a name="top">bank.example</a>',
    "<p>bank.example</p>",
]


@pytest.mark.parametrize("html", LINKS_THAT_LIE)
def test_a_link_whose_text_names_another_host_warns(html):
    plan = a_proposed_plan([a_row(1), a_row(2, html=f"<p>Dear you</p>{html}")])
    assert found(plan) == {"link_text_names_another_host": [2]}
    assert not plan.checks[0]["blocking"]


@pytest.mark.parametrize("html", LINKS_THAT_DO_NOT)
def test_an_honest_link_is_let_through(html):
    assert misleading_links(html) == []


def test_a_target_that_is_covered_already_warns():
    before = a_proposed_plan(rows=3)
    an_effect("done", row=rows_of(before)[1])
    plan = a_proposed_plan(rows=4, title="Once more")
    assert found(plan) == {"already_done": [2]}
    assert not plan.checks[0]["blocking"]


@pytest.mark.parametrize("state", ["pending", "unknown", "stranded"])
def test_a_target_of_which_nobody_knows_warns(state):
    before = a_proposed_plan(rows=3)
    an_effect(state, row=rows_of(before)[2])
    assert found(a_proposed_plan(rows=3)) == {"already_unknown": [3]}


@pytest.mark.parametrize("state", ["failed", "revoked"])
def test_a_target_whose_key_is_free_again_does_not(state):
    an_effect(state, row=rows_of(a_proposed_plan(rows=1))[0])
    assert found(a_proposed_plan(rows=1)) == {}


def test_what_another_workspace_sent_is_none_of_ours():
    theirs = a_proposed_plan(rows=1, token=a_token(a_workspace("globex")))
    an_effect("done", row=rows_of(theirs)[0])
    assert found(a_proposed_plan(rows=1)) == {}


def test_a_letter_that_mail_programs_cut_warns():
    plan = a_proposed_plan([a_row(1, html=f"<p>{'x' * 99_000}</p>"), a_row(2, html=f"<p>{'x' * 101_000}</p>")])
    assert found(plan) == {"oversize": [2]}


def test_a_long_plan_is_checked_in_as_many_queries_as_a_short_one():
    def queries(count: int) -> int:
        draft = a_draft(some_rows(count), title=f"{count} rows", event_id=f"event {count}")
        with CaptureQueriesContext(connection) as captured:
            plans.submit(draft, token=draft.token)
        return len(captured)

    assert queries(400) == queries(4)


@pytest.mark.parametrize(
    "html", ["<" * 400_000, "<a>" * 130_000, "<style" * 80_000, "<!--" * 90_000, "a." * 200_000 + "1", "[A" + "_A" * 200_000]
)
def test_a_letter_made_to_keep_us_busy_does_not(html):
    # A pattern that goes back over what it has read takes minutes here, and the test run's patience ends it.
    faults = list(faults_of("Hello", "", html + "<p>{{ name }}</p>"))
    assert "oversize" in faults
