"""The key is the business shape of the effect, and nothing that a model wrote can change it."""

import hashlib
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.content import Content
from effects.keys import UnusableKey, effect_key, normalize_target, scope_of

VECTORS = json.loads((Path(__file__).parent / "key_vectors.json").read_text())

# One call, said five ways: as is, with other key order, decomposed, shouted, and with the domain in its xn-- form.
CALL = {"event_id": "spring-sale", "tool": "send_email", "target": "zoë@bücher.example", "amount_minor": 1999}
REPRESENTATIONS = [
    CALL,
    dict(reversed(CALL.items())),
    CALL | {"target": unicodedata.normalize("NFD", CALL["target"])},
    CALL | {"target": " ZOË@BÜCHER.example. "},
    CALL | {"target": "zoë@xn--bcher-kva.example"},
]

words = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=40)
parts = words.filter(lambda text: unicodedata.normalize("NFC", text).strip())
locals_ = st.from_regex(r"[a-z0-9]([a-z0-9._+-]{0,20}[a-z0-9])?", fullmatch=True).filter(lambda text: ".." not in text)
domains = st.from_regex(r"[a-z0-9]{1,20}\.(example|org)", fullmatch=True)


def key_of(call: dict[str, object]) -> str:
    return effect_key(**(call | {"target": normalize_target(str(call["target"]), "email")}))  # type: ignore[arg-type]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_five_representations_are_five_hashes_four_when_sorted_and_one_key() -> None:
    assert len({sha(json.dumps(call)) for call in REPRESENTATIONS}) == 5
    assert len({sha(json.dumps(call, sort_keys=True)) for call in REPRESENTATIONS}) == 4
    assert len({key_of(call) for call in REPRESENTATIONS}) == 1


@given(event=parts, tool=parts, local=locals_, domain=domains, amount=st.none() | st.integers(0, 10**12), data=st.data())
def test_every_representation_of_a_call_has_one_key(
    event: str, tool: str, local: str, domain: str, amount: int | None, data: st.DataObject
) -> None:
    plain = effect_key(event, tool, normalize_target(f"{local}@{domain}"), amount)
    shout = data.draw(st.sampled_from([str.upper, str.title, str.lower]))
    form = data.draw(st.sampled_from(["NFC", "NFD"]))
    blanks = data.draw(st.sampled_from(["", " ", "  "]))
    dot = data.draw(st.sampled_from(["", "."]))
    spelled = f"{blanks}{shout(local)}@{shout(domain)}{dot}{blanks}"
    again = effect_key(
        blanks + unicodedata.normalize(form, event), unicodedata.normalize(form, tool) + blanks, normalize_target(spelled), amount
    )
    assert again == plain


@given(drafts=st.lists(words, min_size=2, max_size=6, unique=True))
def test_drafts_of_one_letter_share_a_key_and_differ_in_body(drafts: list[str]) -> None:
    contents = [Content("ada@example.org", text=draft) for draft in drafts]
    assert len({effect_key("sale", "send_email", content.to) for content in contents}) == 1
    assert len({content.digest() for content in contents}) == len(drafts)


@pytest.mark.parametrize("vector", VECTORS["keys"], ids=lambda vector: vector["why"])
def test_golden_vectors_hold(vector: dict[str, object]) -> None:
    assert effect_key(**vector["parts"]) == vector["key"]  # type: ignore[arg-type]


@pytest.mark.parametrize("vector", VECTORS["targets"], ids=lambda vector: vector["why"])
def test_golden_targets_hold(vector: dict[str, str]) -> None:
    assert normalize_target(vector["typed"], vector["kind"]) == vector["resolved"]


@pytest.mark.parametrize(
    ("amount", "word"), [(19.99, "float"), (True, "bool"), (float("nan"), "float"), ("1999", "str"), (1e2, "float")]
)
def test_br_13_it_refuses_an_amount_that_is_no_whole_number(amount: object, word: str) -> None:
    with pytest.raises(UnusableKey, match=f"amount_minor must be a whole number.*{word}"):
        effect_key("sale", "refund", "cus_1", amount)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["event_id", "tool", "target"])
@pytest.mark.parametrize(
    ("value", "why"), [("", "is empty"), ("  ", "is empty"), ("a\nb", "control"), ("a\x00", "control"), (7, "text")]
)
def test_it_refuses_parts_that_say_nothing_or_hide_something(part: str, value: object, why: str) -> None:
    with pytest.raises(UnusableKey, match=f"{part}.*{why}"):
        effect_key(**({"event_id": "e", "tool": "t", "target": "x"} | {part: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "typed", ["", "ada", "@example.org", "ada@", "a@b, c@d.org", "Ada <ada@example.org>", "a b@example.org", "a@exa mple.org"]
)
def test_it_refuses_what_is_no_single_address(typed: str) -> None:
    with pytest.raises(UnusableKey):
        normalize_target(typed, "email")


@pytest.mark.parametrize(("one", "other"), [("ada+news@example.org", "ada@example.org"), ("аda@example.org", "ada@example.org")])
def test_br_12_a_tag_and_a_look_alike_are_other_people(one: str, other: str) -> None:
    assert normalize_target(one) != normalize_target(other)


def test_currency_and_workspace_are_part_of_the_scope() -> None:
    scopes = {
        scope_of("acme", "eur"),
        scope_of("acme", "usd"),
        scope_of("acme"),
        scope_of("globex", "eur"),
        scope_of("acme", "", "EUR/"),
    }
    assert len(scopes) == 5
    with pytest.raises(UnusableKey):
        scope_of("acme/x")


def test_moving_text_between_parts_changes_the_key() -> None:
    assert effect_key("ab", "c", "x") != effect_key("a", "bc", "x")
    assert effect_key("a", "t", "x", 1) != effect_key("a", "t", "x", None, "1")
