"""Arrow a: the database decides who may send."""

import asyncio

import pytest
from django.db import connection

from effects import ledger
from effects.connections import connect
from effects.models import Effect
from effects.workplace import Workplace
from tests import world
from tests.effects.pens import a_claim, claims_to, origin_of, reserve

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_reservation_is_committed_before_anybody_could_call(workplace: Workplace) -> None:
    won = reserve(workplace, world.a_channel(), claims_to("ada", "bo"))
    assert [row.claim.content.to for row in won] == ["ada@example.com", "bo@example.com"]
    kept = Effect.objects.get(pk=won[0].id)  # another connection sees it
    assert (kept.state, kept.attempt, kept.worker) == ("pending", 1, workplace.worker)
    assert kept.deadline > kept.reserved_at


@pytest.mark.parametrize("state", ["pending", "done", "unknown", "stranded"])
def test_a_blocked_key_is_not_won(workplace: Workplace, state: str) -> None:
    world.an_effect(state)
    won = reserve(workplace, world.a_channel(), claims_to("customer1", "customer2"))
    assert [row.claim.content.to for row in won] == ["customer2@example.com"]


@pytest.mark.parametrize("state", ["failed", "revoked"])
def test_a_freed_key_is_won_as_the_next_attempt(workplace: Workplace, state: str) -> None:
    earlier = world.an_effect(state)
    [won] = reserve(workplace, world.a_channel(), claims_to("customer1"))
    assert won.attempt == 2
    assert Effect.objects.filter(key=earlier.key).count() == 2


def test_two_claims_of_one_key_in_one_window_win_once(workplace: Workplace) -> None:
    won = reserve(workplace, world.a_channel(), [a_claim(), a_claim()])
    assert len(won) == 1


def test_r_03_of_fifty_workers_one_wins_each_key(workplace: Workplace) -> None:
    """The same keys from everywhere at once give one claim each, and refusals for all others."""
    channel = world.a_channel()
    claims = claims_to("ada", "bo", "cy", "di")

    async def race() -> list[int]:
        pens = [await connect() for _ in range(50)]
        try:
            wins = await asyncio.gather(
                *(ledger.reserve(pen, claims, of=origin_of(channel), worker="w", deadline=60) for pen in pens)
            )
        finally:
            await asyncio.gather(*(pen.close() for pen in pens))
        return [len(won) for won in wins]

    assert sum(workplace.run(race())) == len(claims)
    assert Effect.objects.filter(state="pending").count() == len(claims)


def test_another_tenants_key_is_another_key(workplace: Workplace) -> None:
    from effects.keys import effect_key, scope_of

    assert effect_key("e", "t", "x", None, scope_of("acme")) != effect_key("e", "t", "x", None, scope_of("globex"))


def test_the_pen_refuses_to_write_inside_a_transaction(workplace: Workplace) -> None:
    async def wrong_shape() -> None:
        async with workplace.pens() as pens, (pen := await pens("reserving")).transaction():
            await ledger.reserve(pen, [a_claim()], of=origin_of(channel), worker="w", deadline=60)

    channel = world.a_channel()
    with pytest.raises(RuntimeError, match="commit, call, commit"):
        workplace.run(wrong_shape())
    assert not Effect.objects.exists()


@pytest.mark.parametrize("name", ["reserve", "keep", "settle", "read"])
def test_no_statement_of_the_hot_path_reads_the_whole_ledger(workplace: Workplace, name: str) -> None:
    """The trap: a plan made while the statistics say "empty" scans everything, or everything open, once the ledger has grown."""
    channel = world.a_channel()
    values = {
        "workspace_id": channel.workspace_id, "channel_id": channel.pk, "tool": "t", "event_id": "e", "scope": "s",
        "plan_id": None, "run_id": "", "worker": "w", "deadline": 60.0, "keys": ["k"], "epochs": [0], "targets": ["x"],
        "amounts": [None], "digests": ["d"], "ids": [1], "kinds": ["answered"], "raws": [b""], "notes": [""],
        "states": ["done"], "receipts": ["r"], "reasons": [""], "retries": [None], "by": "w", "max_attempts": 3,
        "can_look_up": False, "counts": [True],
    }  # fmt: skip

    async def plan() -> str:
        async with workplace.pens() as pen:
            cursor = await (await pen("reserving")).execute("EXPLAIN " + ledger.SQL[name], values)
            return "\n".join(line for (line,) in await cursor.fetchall())

    told = workplace.run(plan())
    assert "Seq Scan on effects_effect" not in told
    assert "open_effects_by_state" not in told


def test_an_index_backs_the_promise() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'one_live_effect_per_key_and_epoch'")
        [(definition,)] = cursor.fetchall()
    assert definition.startswith("CREATE UNIQUE INDEX")
    for state in ("pending", "done", "unknown", "stranded"):
        assert state in definition
