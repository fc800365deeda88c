"""The channels page: settings, never secrets, and a person's hand on one channel or on the whole workspace."""

import pytest
from django.test import Client

from effects.models import Pause
from effects.secrets import seal
from tests import world

pytestmark = pytest.mark.django_db(transaction=True)


def test_channels_show_settings_and_never_secrets(dana: Client) -> None:
    channel = world.a_channel()
    channel.secrets = seal({"authorization": "Bearer very-secret"})
    channel.save()
    html = dana.get("/acme/channels/").content.decode()
    assert "http://127.0.0.1:9/send" in html
    assert "authorization" in html
    assert "very-secret" not in html


def test_a_pause_of_a_channel_is_lifted_with_a_reason(dana: Client, ed: Client) -> None:
    channel = world.a_channel()
    pause = Pause.objects.create(workspace=channel.workspace, subject=f"channel:{channel.pk}", reason="429", started_by="machine")
    address = "/acme/channels/letters/resumption/"
    assert ed.post(address, {"reason": "Go."}).status_code == 403
    assert dana.post(address, {"reason": " "}).status_code == 422
    assert dana.post(address, {"reason": "They raised our quota."}).status_code == 303
    pause.refresh_from_db()
    assert pause.lifted_at
    assert dana.post(address, {"reason": "Again."}).status_code == 409


@pytest.mark.parametrize("place", ["channels/letters/", ""])
def test_a_person_pauses_and_lets_go_on(dana: Client, ed: Client, place: str) -> None:
    world.a_channel()
    hold, go_on = f"/acme/{place}pause/", f"/acme/{place}resumption/"
    assert ed.post(hold, {"reason": "Stop."}).status_code == 403
    for wrong in (
        {"reason": " "},
        {"reason": "x", "minutes": "0"},
        {"reason": "x", "minutes": "soon"},
        {"reason": "x", "minutes": "99999"},
    ):
        assert dana.post(hold, wrong).status_code == 422
    assert dana.post(go_on, {"reason": "Go."}).status_code == 409
    assert not Pause.objects.exists()
    assert dana.post(hold, {"reason": "Wrong sender address", "minutes": "30"}).status_code == 303
    html = dana.get("/acme/channels/").content.decode()
    assert "Wrong sender address" in html
    assert "Let it go on" in html
    assert dana.post(go_on, {"reason": "Mended."}).status_code == 303
    assert Pause.objects.get().lifted_by.startswith("Dana ")


def test_a_pause_without_end_is_begun_once(dana: Client) -> None:
    world.a_channel()
    assert dana.post("/acme/channels/letters/pause/", {"reason": "first"}).status_code == 303
    assert dana.post("/acme/channels/letters/pause/", {"reason": "second"}).status_code == 409
    assert Pause.objects.get().reason == "first"


def test_every_page_says_that_the_workspace_is_paused(dana: Client, alice: Client) -> None:
    world.a_channel()
    dana.post("/acme/pause/", {"reason": "Somebody broke in"})
    for page in ("inbox", "plans", "effects"):
        html = alice.get(f"/acme/{page}/").content.decode()
        assert "Nothing new is sent in Acme" in html
        assert "Somebody broke in" in html


def test_another_tenants_channel_is_not_there(dana: Client) -> None:
    world.a_channel(world.a_workspace("globex"), slug="theirs")
    for act in ("pause", "resumption"):
        assert dana.post(f"/acme/channels/theirs/{act}/", {"reason": "mischief"}).status_code == 404
    assert not Pause.objects.exists()
