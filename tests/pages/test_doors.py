"""Who gets through which door."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from accounts.roles import Act, Role, may
from approvals.models import Decision, Plan
from audit.models import Entry
from effects.models import Effect, Epoch, Pause
from tests import world

OPEN_DOORS = {"", "theme/"}  # the way in itself


def routes() -> list[tuple[str, URLPattern]]:
    """Every route of our own pages, with its whole pattern."""
    found = []
    for entry in get_resolver().url_patterns:
        if isinstance(entry, URLResolver) and "api" not in str(entry.pattern) and "accounts/" not in str(entry.pattern):
            found += [(f"{entry.pattern}{route.pattern}", route) for route in entry.url_patterns if isinstance(route, URLPattern)]
    return found


def test_every_page_of_a_workspace_has_a_door_that_names_one_act() -> None:
    for path, route in routes():
        if path not in OPEN_DOORS:
            assert path.startswith("<slug:workspace>/"), path
            assert isinstance(getattr(route.callback, "act", None), Act), path


def things() -> dict[str, int]:
    """The number of one thing of each kind that has pages."""
    effect = world.an_effect("unknown", target="someone@example.com")
    return {
        "plans": world.a_proposed_plan(2).pk,
        "effects": effect.pk,
        "runs": world.a_run().pk,
        "opt-outs": world.an_opt_out().pk,
    }


def address_of(path: str, numbers: dict[str, int] | None = None) -> str:
    """The address of a route, with things that are there."""
    number = (numbers or things()).get(path.split("/")[1], 1)
    for part, value in (
        ("<slug:workspace>", "acme"), ("<int:pk>", number), ("<int:position>", 1), ("<slug:slug>", "letters"),
    ):  # fmt: skip
        path = path.replace(part, str(value))
    return f"/{path}"


DOORS = sorted((path, route.callback.act) for path, route in routes() if path not in OPEN_DOORS)


def test_r_08_a_scanner_that_opens_every_address_changes_nothing(alice: Client, client: Client) -> None:
    """Mail scanners and browsers fetch links ahead, with and without somebody's session: an address that is opened decides nothing."""
    numbers = things()

    def what_stands() -> list[object]:
        tables = (Plan, Decision, Effect, Pause, Epoch)
        noted = Entry.objects.exclude(act__endswith=" exported")  # who takes a list away is noted, and decides nothing
        return [list(found.order_by("pk").values()) for found in (*(table.objects for table in tables), noted)]

    before = what_stands()
    for path, _ in DOORS:
        for visitor in (alice, client):
            address = address_of(path, numbers)
            assert visitor.get(address, headers={"Sec-Purpose": "prefetch"}).status_code < 500
            assert visitor.head(address).status_code < 500
    assert what_stands() == before


@pytest.mark.parametrize(("path", "act"), DOORS)
def test_charlie_is_told_that_nothing_is_there(path: str, act: Act, charlie: Client) -> None:
    address = address_of(path)
    assert charlie.get(address).status_code in (404, 405)
    assert charlie.post(address).status_code in (404, 405)


@pytest.mark.parametrize(("path", "act"), DOORS)
def test_a_stranger_is_sent_to_sign_in(path: str, act: Act, client: Client, db: None) -> None:
    address = address_of(path)
    answers = {client.get(address).status_code, client.post(address).status_code}
    assert answers <= {302, 405}
    assert 302 in answers


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(("path", "act"), DOORS)
def test_a_role_that_may_not_is_told_so(path: str, act: Act, role: Role, db: None) -> None:
    browser = world.signed_in(world.a_person("Robin", role))
    address = address_of(path)
    statuses = {browser.get(address).status_code, browser.post(address).status_code}
    assert (403 in statuses) == (not may(role, act))


def test_a_fragment_sends_the_whole_page_to_sign_in(client: Client, db: None) -> None:
    world.a_workspace()
    answer = client.get(
        "/acme/plans/", headers={"HX-Request": "true", "HX-Target": "plans", "HX-Current-URL": "http://testserver/acme/plans/"}
    )
    assert answer["HX-Redirect"] == "/accounts/login/?next=/acme/plans/"


def test_pages_are_never_kept_by_the_browser(alice: Client) -> None:
    assert "no-store" in alice.get("/acme/plans/")["Cache-Control"]


def test_a_role_that_ends_ends_at_once(alice: Client) -> None:
    plan = world.a_proposed_plan()
    world.alice().memberships.update(role=Role.AUDITOR)
    assert alice.post(f"/acme/plans/{plan.pk}/approval/", {"digest": plan.digest}).status_code == 403
    world.alice().memberships.all().delete()
    assert alice.get(f"/acme/plans/{plan.pk}/").status_code == 404


def test_one_workspace_opens_at_once_and_more_are_a_choice(alice: Client) -> None:
    assert alice.get("/")["Location"] == "/acme/inbox/"
    world.a_person("Alice", Role.AUDITOR, world.a_workspace("globex"))
    assert b"Where to?" in alice.get("/").content


def test_the_theme_is_kept_in_a_cookie_and_drawn_by_the_server(alice: Client) -> None:
    answer = alice.post("/theme/", {"theme": "dark", "next": "/acme/plans/"})
    assert (answer.status_code, answer["Location"]) == (303, "/acme/plans/")
    assert b'data-bs-theme="dark"' in alice.get("/acme/plans/").content


@pytest.mark.parametrize("away", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_the_theme_sends_nobody_elsewhere(away: str, client: Client) -> None:
    assert client.post("/theme/", {"theme": "dark", "next": away})["Location"] == "/"
