"""A provider that creates first and completes when its one-shot challenge is answered: answered once, or stranded, never created again."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.utils import timezone

from effects import ledger
from effects.answering import Answering
from effects.channels import open_provider
from effects.models import Challenge, Channel, Effect
from effects.providers import BadSettings
from effects.sweeping import sweep
from effects.verdicts import Reply, ReplyKind
from effects.workplace import Workplace
from tests import world
from tests.callers import kept
from tests.effects.pens import claims_to, outside, reserve, send
from tests.fakes import Behaviour, FakeHttp, accepts_then_hangs, answers, challenges, dies

pytestmark = pytest.mark.django_db(transaction=True)

ADA = "ada@example.com"


def a_channel_to(provider: FakeHttp, **settings: object) -> Channel:
    return world.a_channel(settings=provider.settings | {"lookup_url": "", "timeout": 0.5} | settings)


def sent(workplace: Workplace, provider: FakeHttp, to_answers: Behaviour | None = None, **settings: object) -> Effect:
    """The effect after a worker met a challenge, and what its answer met."""
    provider.otherwise = challenges()
    provider.to_answers = to_answers or provider.to_answers
    send(workplace, a_channel_to(provider, **settings), claims_to("ada"))
    assert provider.calls[ADA] == 1, "created once, whatever came of the answer"
    return Effect.objects.get()


def left_behind(workplace: Workplace, provider: FakeHttp, **settings: object) -> Effect:
    """The effect whose worker died after it had kept the reply that holds the challenge."""
    provider.challenged[f"c-{ADA}"] = ADA, "key"
    channel = a_channel_to(provider, **settings)
    (won,) = reserve(workplace, channel, claims_to("ada"), deadline=0.001)
    body = f'{{"id": "m-{ADA}", "challenge": "c-{ADA}"}}'
    raw = f"HTTP/1.1 201 Created\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    async def keep() -> None:
        async with workplace.pens() as pen:
            await ledger.keep_and_settle(
                await pen("keeping"), replies=[(won.id, Reply(ReplyKind.ANSWERED, raw))], verdicts=[],
                by="the dead", max_attempts=3, can_look_up=False,
            )  # fmt: skip

    workplace.run(keep())
    return Effect.objects.get()


def begin(workplace: Workplace, effect: Effect, within: float = 30) -> float | None:
    async def work() -> float | None:
        async with workplace.pens() as pen:
            return await ledger.begin_challenge(await pen("answering"), effect.pk, by="the dead", within=within)

    return workplace.run(work())


def swept(workplace: Workplace) -> Effect:
    workplace.run(sweep(workplace))
    return Effect.objects.get()


@pytest.mark.parametrize(
    ("to_answers", "state", "reason", "receipt"),
    [
        (answers(200, b'{"ok": true}', accepted=True), "done", "its challenge was answered", f"m-{ADA}"),
        (answers(201, b'{"id": "final"}', accepted=True), "done", "its challenge was answered", "final"),
        (answers(410), "stranded", "HTTP 410: created, and the answer to its challenge was refused", f"m-{ADA}"),
        (answers(429), "stranded", "HTTP 429: created, and the answer to its challenge was refused", f"m-{ADA}"),
        (answers(503), "unknown", "HTTP 503 to the answer to its challenge: it may be complete", ""),
        (answers(503, accepted=True), "unknown", "HTTP 503 to the answer to its challenge: it may be complete", ""),
        (dies(), "unknown", "its challenge was answered, and the reply was lost: ", ""),
        (accepts_then_hangs(), "unknown", "its challenge was answered, and the reply was lost: ", ""),
    ],
)
def test_the_reply_to_the_answer_decides(
    workplace: Workplace, to_answers: Behaviour, state: str, reason: str, receipt: str
) -> None:
    with FakeHttp() as provider:
        effect = sent(workplace, provider, to_answers)
        assert provider.answers[ADA] == 1
        assert provider.deliveries[ADA] == to_answers.accepts
    assert (effect.state, effect.receipt) == (state, receipt)
    assert effect.reason.startswith(reason)
    assert b'"challenge"' in effect.kept_reply.raw, "what was created is kept as it was told"
    assert effect.challenge.kind in ("answered", "lost")


def test_a_201_without_a_challenge_is_done_as_ever(workplace: Workplace) -> None:
    with FakeHttp(otherwise=answers(201, b'{"id": "m-1"}', accepted=True)) as provider:
        send(workplace, a_channel_to(provider), claims_to("ada"))
    assert Effect.objects.get().state == "done"
    assert not Challenge.objects.exists()


def test_the_answer_is_begun_on_disk_before_its_first_byte(workplace: Workplace) -> None:
    seen = []
    with FakeHttp() as provider:
        provider.before_completion = lambda target, receipt: seen.append(outside("SELECT kind FROM effects_challenge"))
        sent(workplace, provider)
    assert seen == [[("",)]]


def test_whoever_comes_later_does_not_answer(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider)
        assert begin(workplace, effect), "a worker that stands still now"
        assert swept(workplace).state == "pending", "it may be answering"
        assert provider.answers[ADA] == 0
        Challenge.objects.update(begun_at=timezone.now() - timedelta(minutes=1))
        effect = swept(workplace)
        assert provider.answers[ADA] == 0
    assert (effect.state, effect.reason.partition(",")[0]) == ("unknown", "it was created")


def test_two_who_would_answer_cannot_both(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider)
        assert [begin(workplace, effect) is not None for _ in range(3)] == [True, False, False]


def test_the_sweeper_answers_for_a_dead_worker_while_there_is_time(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        left_behind(workplace, provider)
        effect = swept(workplace)
        assert provider.answers[ADA] == 1
    assert (effect.state, effect.receipt) == ("done", f"m-{ADA}")
    assert effect.settled_by.startswith("sweeper ")


def test_out_of_time_it_is_stranded_and_nobody_answers(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider, challenge_within=0.0)
        effect = swept(workplace)
        assert begin(workplace, effect) is None
        assert provider.answers[ADA] == provider.calls[ADA] == 0
    assert (effect.state, effect.receipt) == ("stranded", f"m-{ADA}")
    assert effect.reason == "created, and its challenge was not answered: its time was over"


def test_an_answer_that_never_left_is_given_again_until_its_time_is_over(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider, challenge_url="http://127.0.0.1:9/answer")
        effect = swept(workplace)
        assert (effect.state, effect.challenge.kind) == ("pending", "not sent")
        Channel.objects.update(settings=effect.channel.settings | {"challenge_url": provider.settings["challenge_url"]})
        Effect.objects.update(look_up_at=timezone.now() - timedelta(seconds=1))
        assert swept(workplace).state == "done"
        assert provider.answers[ADA] == 1


def test_one_that_never_left_in_its_time_is_stranded(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        left_behind(workplace, provider, challenge_url="http://127.0.0.1:9/answer")
        effect = swept(workplace)
        Channel.objects.update(settings=effect.channel.settings | {"challenge_within": 0.0})
        Effect.objects.update(look_up_at=timezone.now() - timedelta(seconds=1))
        assert swept(workplace).state == "stranded"


def test_a_callback_that_says_no_frees_nothing_while_the_answer_may_be_under_way(workplace: Workplace) -> None:
    """It was created, so `failed` would be a lie: what the answer meets decides, and the callback is weighed after that."""
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider)
        begin(workplace, effect)
        told = kept(effect, "rejected")
        assert swept(workplace).state == "pending"
        told.refresh_from_db()
        assert told.outcome == ""


def test_a_kept_answer_is_read_again_after_a_crash(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        effect = left_behind(workplace, provider)
        begin(workplace, effect)

        async def keep() -> None:
            async with workplace.pens() as pen:
                answer = Reply(ReplyKind.ANSWERED, b"HTTP/1.1 204 No Content\r\n\r\n")
                await ledger.keep_challenge(await pen("answering"), effect.pk, answer)

        workplace.run(keep())
        effect = swept(workplace)
        assert provider.answers[ADA] == 0
    assert (effect.state, effect.receipt) == ("done", f"m-{ADA}")


def test_many_answers_of_one_channel_go_side_by_side(workplace: Workplace) -> None:
    with FakeHttp(otherwise=challenges()) as provider:
        send(workplace, a_channel_to(provider), claims_to(*(f"n{n}" for n in range(40))), window=16)
        assert sorted(provider.answers.values()) == [1] * 40
    assert {effect.state for effect in Effect.objects.all()} == {"done"}


def test_a_look_up_proves_what_the_lost_answer_completed(workplace: Workplace) -> None:
    with FakeHttp() as provider:
        lookup = {"lookup_url": provider.settings["lookup_url"], "settle_window": 60.0}
        effect = sent(workplace, provider, answers(503, accepted=True), **lookup)
        assert effect.state == "unknown"
        effect = swept(workplace)
    assert (effect.state, effect.receipt, effect.reason) == ("done", f"m-{ADA}", "found by look-up")


@pytest.mark.parametrize("change", ["kind = 'not sent'", "raw = 'x'", "effect_id = 0"])
def test_an_answer_that_was_kept_never_changes(workplace: Workplace, change: str) -> None:
    with FakeHttp() as provider:
        sent(workplace, provider)
    with pytest.raises(IntegrityError, match="never update"), connection.cursor() as cursor:
        cursor.execute(f"UPDATE effects_challenge SET {change}")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"challenge_field": "", "challenge_url": "http://127.0.0.1:9/"}, "go together"),
        ({"challenge_field": "c", "challenge_url": ""}, "go together"),
        ({"challenge_field": "c", "challenge_url": "ftp://example.com"}, "challenge_url must be a full address"),
    ],
)
def test_settings_that_cannot_work_are_refused(told: dict[str, str], says: str) -> None:
    channel = Channel(provider="http", settings={"url": "http://127.0.0.1:9/"} | told, secrets="")
    with pytest.raises(BadSettings, match=says):
        open_provider(channel)


def test_a_provider_without_answers_is_a_fault_of_ours(workplace: Workplace) -> None:
    channel = world.a_channel(provider="smtp", settings={"host": "127.0.0.1", "port": "9", "tls": "none", "from": "a@b.example"})

    async def work() -> None:
        async with workplace.pens() as pen:
            await Answering(pen, await workplace.provider(channel), "w").answer(1, Reply(ReplyKind.ANSWERED), "c")

    with pytest.raises(TypeError, match="takes no answers"):
        workplace.run(work())
