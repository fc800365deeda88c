"""The mail relay: every phase in which it can break, and what that means for the person at the other end."""

import email
import email.policy
from urllib.parse import unquote

import pytest

from audit.chain import Actor
from effects import channels, rulings
from effects.content import Content
from effects.errors import BadChannel
from effects.ledger import Claim
from effects.models import Channel, Effect
from effects.providers.letters import message_id
from effects.states import State
from effects.sweeping import sweep
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import a_claim, claims_to, send, state_of
from tests.fakes import Behaviour, FakeHttp, FakeRelay, MailBehaviour, answers

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = {
    "accepted": (MailBehaviour(), "done", 1, False),
    "refused at RCPT for good": (MailBehaviour(rcpt=550), "failed", 0, False),
    "refused at RCPT for now": (MailBehaviour(rcpt=451), "failed", 0, True),
    "dropped at RCPT": (MailBehaviour(drops="rcpt"), "failed", 0, True),
    "refused at DATA for now": (MailBehaviour(data=451), "failed", 0, True),
    "refused at DATA for good": (MailBehaviour(data=554), "failed", 0, False),
    "dropped at DATA": (MailBehaviour(drops="data"), "failed", 0, True),
    "refused after the dot for good": (MailBehaviour(dot=554), "failed", 0, False),
    "refused after the dot for now": (MailBehaviour(dot=452), "failed", 0, True),
    "filed, then dropped": (MailBehaviour(drops="dot"), "unknown", 1, False),
    "filed, then silent": (MailBehaviour(hangs_after_dot=True), "unknown", 1, False),
}


def a_channel_to(relay: FakeRelay, **settings: object) -> Channel:
    typed = {"port": relay.port, "timeout": 1.0} | settings
    return world.a_channel(provider="smtp", slug="mail", settings=relay.settings | typed)


@pytest.mark.parametrize("name", TABLE)
def test_r_14_each_phase_means_one_state(workplace: Workplace, name: str) -> None:
    """Before 354 nothing was accepted; after the final dot a missing answer proves nothing."""
    behaviour, state, delivered, transient = TABLE[name]
    with FakeRelay() as relay:
        relay.behaviours["ada@example.com"] = behaviour
        send(workplace, a_channel_to(relay), claims_to("ada", "bo"))
        assert relay.deliveries["ada@example.com"] == delivered
        assert relay.calls["ada@example.com"] == 1
    effect = Effect.objects.get(target="ada@example.com")
    assert (effect.state, effect.retry_at is not None) == (state, transient)
    assert Effect.objects.get(target="bo@example.com").state == "done", "neighbours keep flowing"


LOST = {
    "waits": MailBehaviour(hangs_after_dot=True),
    "resets": MailBehaviour(resets_after_dot=True),
    "closes": MailBehaviour(drops="dot"),
}


@pytest.mark.parametrize("to", ["done", "failed"])
@pytest.mark.parametrize("how", LOST)
def test_br_08_the_reply_to_the_final_dot_is_lost(workplace: Workplace, how: str, to: str) -> None:
    """One letter, whoever tries again; the conversation is kept; only a person's "not delivered" frees the key."""
    with FakeRelay() as relay:
        relay.behaviours["ada@example.com"] = LOST[how]
        channel = a_channel_to(relay)
        send(workplace, channel, claims_to("ada"))
        relay.behaviours.clear()
        effect = Effect.objects.get()
        assert (effect.state, effect.reply.kind, effect.retry_at) == ("unknown", "lost", None)
        phases = [line.split(" ")[0] for line in bytes(effect.reply.raw).decode().splitlines()]
        assert phases == ["mail", "rcpt", "data"], "all that the relay said is kept"
        assert send(workplace, channel, claims_to("ada")) == 0
        workplace.run(sweep(workplace))
        assert relay.deliveries["ada@example.com"] == 1
        rulings.resolve(effect, to=State(to), by=world.acting(world.dana()), reason="asked", evidence="a call", seen="unknown")
        assert send(workplace, channel, claims_to("ada")) == (to == "failed")


def test_r_17_each_recipient_has_a_letter_and_a_state_of_their_own(workplace: Workplace) -> None:
    """No envelope is shared: a refused recipient takes nobody along, and who was accepted is never sent it again."""
    with FakeRelay() as relay:
        relay.behaviours["cc@example.com"] = MailBehaviour(rcpt=550)
        channel = a_channel_to(relay)
        send(workplace, channel, claims_to("to", "cc"))
        assert relay.calls == {"to@example.com": 1, "cc@example.com": 1}
        send(workplace, channel, claims_to("to", "cc"))
        assert relay.deliveries == {"to@example.com": 1}
    assert (state_of("to@example.com"), Effect.objects.filter(target="to@example.com").count()) == ("done", 1)
    assert set(Effect.objects.filter(target="cc@example.com").values_list("state", flat=True)) == {"failed"}


def test_the_queue_id_is_the_receipt_and_the_conversation_is_kept(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), claims_to("ada"))
    effect = Effect.objects.get()
    assert effect.receipt == "Q1"
    assert [line.split(" ")[0] for line in bytes(effect.reply.raw).decode().splitlines()] == ["mail", "rcpt", "data", "dot"]


def test_the_message_is_the_frozen_letter(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), [a_claim("ada@example.com", text="Grüße\n.\n.hidden dot\nfrom 春")])
        [raw] = relay.messages
    message = email.message_from_bytes(raw.replace(b"\r\n..", b"\r\n."), policy=email.policy.default)
    assert (message["To"], message["Subject"]) == ("ada@example.com", "Good news")
    assert message.get_content().replace("\r\n", "\n").startswith("Grüße\n.\n.hidden dot\nfrom 春")
    assert message["X-Signoff-Key"].strip() == f"{Effect.objects.get().key}:0"


def test_a_second_attempt_carries_the_same_message_id(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        relay.behaviours["ada@example.com"] = MailBehaviour(dot=451)
        channel = a_channel_to(relay)
        send(workplace, channel, claims_to("ada"))
        relay.behaviours.clear()
        send(workplace, channel, claims_to("ada"))
        [raw] = relay.messages
    second = Effect.objects.get(attempt=2)
    assert second.state == "done"
    assert message_id(second.key, 0, sender="Ada <ada@acme.example>").encode() in raw


def test_connections_are_kept_open_and_no_more_than_a_window(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), claims_to(*(f"p{n}" for n in range(40))), window=4)
        assert relay.connections <= 4
        assert sum(relay.deliveries.values()) == 40


def test_a_relay_that_is_not_there_means_not_sent(workplace: Workplace) -> None:
    channel = world.a_channel(provider="smtp", slug="mail", settings={"host": "127.0.0.1", "port": 1, "tls": "none"})
    send(workplace, channel, claims_to("ada"))
    effect = Effect.objects.get()
    assert (effect.state, effect.reply.kind) == ("failed", "not sent")


@pytest.mark.parametrize(
    ("answer", "state", "answered"),
    [
        (answers(200, b'{"id": "Q77"}'), "done", "found"),
        (answers(404, b"{}"), "unknown", "absent"),
        (answers(200, b"not json"), "unknown", "inconclusive"),
        (answers(500), "unknown", "inconclusive"),
    ],
    ids=["found", "absent", "garbage", "broken"],
)
def test_a_lost_letter_is_looked_up_by_its_message_id(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, answer: Behaviour, state: str, answered: str
) -> None:
    asked: list[str] = []
    with FakeRelay() as relay, FakeHttp() as archive:
        monkeypatch.setattr(archive, "_found", lambda path: asked.append(unquote(path)) or answer)
        relay.behaviours["ada@example.com"] = MailBehaviour(drops="dot")
        channel = a_channel_to(relay, lookup_url=f"http://127.0.0.1:{archive.port}/look?id={{message_id}}", settle_window=0.0)
        send(workplace, channel, claims_to("ada"))
        workplace.run(sweep(workplace))
    effect = Effect.objects.get()
    assert asked == [f"/look?id={message_id(effect.key, 0, sender='Ada <ada@acme.example>')}"]
    assert (effect.state, effect.look_ups.get().answer) == (state, answered)
    assert effect.receipt == ("Q77" if state == "done" else "")


def test_a_refusal_followed_by_a_hang_up_is_still_a_refusal(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        relay.behaviours["ada@example.com"] = MailBehaviour(rcpt=550, hangs_up_after_no=True)
        send(workplace, a_channel_to(relay), claims_to("ada"))
    effect = Effect.objects.get()
    assert (effect.state, effect.retry_at) == ("failed", None)
    assert b"rcpt 550" in bytes(effect.reply.raw)


def test_letters_leave_in_seven_bits(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), [a_claim("ada@example.com", text="Grüße aus Köln")])
        [raw] = relay.messages
    assert raw.isascii()


def test_a_subject_that_no_mail_can_carry_is_withheld(workplace: Workplace) -> None:
    content = Content("ada@example.com", "Good\u2028news", "text")
    claim = Claim(a_claim().key, 0, content, content.digest())
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), [claim])
        assert not relay.deliveries
    effect = Effect.objects.get()
    assert (effect.state, effect.reply.kind) == ("failed", "withheld")


def test_an_address_beyond_ascii_is_refused_where_the_relay_cannot_take_it(workplace: Workplace) -> None:
    with FakeRelay() as relay:
        send(workplace, a_channel_to(relay), [a_claim("zoë@example.com")])
        assert not relay.deliveries
    assert Effect.objects.get().state == "failed"


@pytest.mark.parametrize("sender", ["Acme, Inc. <a@acme.example>", "nobody", "a@b.example\r\nBcc: x@y.example"])
def test_a_sender_that_is_no_single_address_is_refused(sender: str) -> None:
    settings = {"host": "127.0.0.1", "port": "25", "tls": "none", "from": sender}
    with pytest.raises(BadChannel, match="from must be an address"):
        channels.add(
            world.a_workspace(), slug="mail", provider="smtp", settings=settings, secrets={}, by=Actor("command", None, "a test")
        )
