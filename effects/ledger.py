"""The machine's pen: the only module by which a program writes to the ledger. The SQL is in `effects/sql/pen.sql`.

Commit, call, commit: each function here is one transaction of its own on a connection in autocommit, and refuses to run inside
another, so that `reserve` is on disk before the call and the raw reply before anybody reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg.pq import TransactionStatus

from effects import failpoints
from effects.connections import Connection
from effects.content import Content
from effects.providers.base import Sighting
from effects.statements import read_statements
from effects.states import State
from effects.verdicts import Reply, Verdict, storable

SQL = read_statements(Path(__file__).parent / "sql" / "pen.sql")

START_WITHIN = 5.0  # seconds after its reservation in which a call may begin; an older claim is somebody else's business
FIRST_LOOK = 2.0  # seconds until a provider that decides later is asked for the first time
SLACK = 3.0  # seconds for keeping the reply, before the sweeper may look


@dataclass(frozen=True, slots=True)
class Claim:
    """One row that wants to be sent: its identity and its frozen content."""

    key: str
    epoch: int
    content: Content
    content_digest: str
    withheld: str = ""  # why it is not to be called at all, however it is claimed


@dataclass(frozen=True, slots=True)
class Origin:
    """What all claims of one sending have in common."""

    workspace_id: int
    channel_id: int
    tool: str
    event_id: str
    scope: str
    plan_id: int | None = None
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Won:
    """A reservation that is ours: the effect's id, and which attempt at its key this is."""

    id: int
    attempt: int
    claim: Claim


async def reserve(pen: Connection, claims: Sequence[Claim], *, of: Origin, worker: str, deadline: float) -> list[Won]:
    """Arrow a: reserve what can be reserved and return that; a claim whose key is blocked is not in the answer.

    `deadline` is in seconds from now: past it, nobody is still making the call.
    """
    _stand_alone(pen)
    claims = sorted(claims, key=lambda claim: (claim.key, claim.epoch))  # one order for everybody: no deadlock over two plans
    failpoints.reach("reserve", pen)
    cursor = await pen.execute(
        SQL["reserve"],
        {
            "workspace_id": of.workspace_id,
            "channel_id": of.channel_id,
            "tool": of.tool,
            "event_id": of.event_id,
            "scope": of.scope,
            "plan_id": of.plan_id,
            "run_id": of.run_id,
            "worker": worker,
            "deadline": deadline,
            "keys": [claim.key for claim in claims],
            "epochs": [claim.epoch for claim in claims],
            "targets": [claim.content.to for claim in claims],
            "amounts": [claim.content.amount_minor for claim in claims],
            "digests": [claim.content_digest for claim in claims],
        },
    )
    failpoints.reach("reserved", pen)
    wanted = {(claim.key, claim.epoch): claim for claim in claims}
    return [Won(id, attempt, wanted[key, epoch]) for id, key, epoch, attempt in await cursor.fetchall()]


async def keep_and_settle(
    pen: Connection,
    *,
    replies: Sequence[tuple[int, Reply]],
    verdicts: Sequence[tuple[int, Verdict]],
    by: str,
    max_attempts: int,
    can_look_up: bool,
) -> None:
    """One commit for the raw replies of this batch and the verdicts read from the batch before (arrows b, c, d, e).

    A verdict that is pending takes no arrow: the provider decides later, and is looked up until it has, or its challenge is answered.
    A row that is no longer pending (the sweeper was first) is left as it is.
    """
    _stand_alone(pen)
    async with pen.pipeline(), pen.transaction():
        if verdicts:
            failpoints.reach("settle", pen)
        if settling := [(id, verdict) for id, verdict in verdicts if verdict.state is not State.PENDING]:
            await pen.execute(SQL["settle"], _settling(settling, by, max_attempts, can_look_up))
        if waiting := [(id, verdict) for id, verdict in verdicts if verdict.state is State.PENDING and not verdict.challenge]:
            ids, reasons = [id for id, _ in waiting], [verdict.reason for _, verdict in waiting]
            await pen.execute(SQL["await"], {"ids": ids, "reasons": reasons, "seconds": FIRST_LOOK})
        if replies:
            failpoints.reach("keep", pen)
            await pen.execute(
                SQL["keep"],
                {
                    "ids": [id for id, _ in replies],
                    "kinds": [reply.kind.value for _, reply in replies],
                    "raws": [reply.raw for _, reply in replies],
                    "notes": [storable(reply.note) for _, reply in replies],
                },
            )
    if verdicts:
        failpoints.reach("settled", pen)
    if replies:
        failpoints.reach("kept", pen)


async def begin_challenge(pen: Connection, id: int, *, by: str, within: float) -> float | None:
    """The seconds left for the one answer to this effect's challenge, which is now ours to give; none: it is another's, or too late."""
    _stand_alone(pen)
    row = await (await pen.execute(SQL["begin_challenge"], {"id": id, "by": by, "within": within})).fetchone()
    return row[0] if row else None


async def keep_challenge(pen: Connection, id: int, answer: Reply) -> None:
    """The raw reply to that answer, before anybody reads it."""
    await pen.execute(SQL["keep_challenge"], _raw(id, answer))


async def forgo_challenge(pen: Connection, id: int, answer: Reply, *, by: str) -> bool:
    """Nobody will answer any more: `answer` says so. False when somebody had begun."""
    return (await pen.execute(SQL["forgo_challenge"], _raw(id, answer) | {"by": by})).rowcount == 1


async def prove(pen: Connection, id: int, *, seen: State, sighting: Sighting, by: str) -> bool:
    """Arrows b and f: a look-up found it. The look-up and the settling are one commit. False when somebody was first."""
    async with pen.transaction():
        await _note(pen, id, sighting, by)
        failpoints.reach("prove", pen)
        cursor = await pen.execute(SQL["prove"], {"id": id, "state": seen, "receipt": sighting.receipt, "by": by})
    failpoints.reach("proved", pen)
    return cursor.rowcount == 1


async def refuse(pen: Connection, id: int, *, sighting: Sighting, by: str) -> bool:
    """Arrow c: the provider accepted it, decided, and said no. False when somebody was first."""
    async with pen.transaction():
        await _note(pen, id, sighting, by)
        cursor = await pen.execute(SQL["refuse"], {"id": id, "by": by})
    return cursor.rowcount == 1


async def settle_by_callback(
    pen: Connection, callback: int, id: int, *, seen: State, to: State, receipt: str, reason: str, by: str, awaited: bool
) -> bool:
    """Arrows b, c and f: the provider called back with proof. Effect and callback move in one commit; False when somebody was first."""
    _stand_alone(pen)
    values = {"callback": callback, "id": id, "seen": seen, "state": to, "receipt": receipt, "reason": reason, "by": by}
    failpoints.reach("apply", pen)
    cursor = await pen.execute(SQL["settle_by_callback"], values | {"awaited": awaited})
    failpoints.reach("applied", pen)
    return cursor.rowcount == 1


async def ask_again(pen: Connection, id: int, *, seen: State, sighting: Sighting, by: str, seconds: float) -> None:
    """Note a look-up that proved nothing, and when to ask next."""
    async with pen.transaction():
        await _note(pen, id, sighting, by)
        await pen.execute(SQL["ask_again"], {"id": id, "state": seen, "seconds": seconds})


async def give_up(pen: Connection, id: int, *, reason: str, by: str, awaited: bool = False) -> bool:
    """Arrow d: a pending row that nobody can speak for becomes unknown and goes to a person.

    Unless it is `awaited`, a reply that was kept meanwhile is read first.
    """
    failpoints.reach("give-up", pen)
    cursor = await pen.execute(SQL["give_up"], {"id": id, "reason": reason, "by": by, "awaited": awaited})
    failpoints.reach("gave-up", pen)
    return cursor.rowcount == 1


async def stop_asking(pen: Connection, id: int) -> None:
    """The settle window of an unknown row is over: look-ups end, a person has it."""
    await pen.execute(SQL["stop_asking"], {"id": id})


async def take_slots(pen: Connection, channel_id: int, *, n: int, rate: float, within: float) -> float | None:
    """Seconds to wait until the next `n` calls of this channel may start, over all workers together; none: not `within` so many."""
    cursor = await pen.execute(SQL["take_slots"], {"channel_id": channel_id, "n": n, "rate": rate, "within": within})
    row = await cursor.fetchone()
    return max(0.0, row[0]) if row else None


async def rest(pen: Connection, *, workspace_id: int, channel_id: int, seconds: float | None, reason: str, by: str) -> None:
    """Pause one channel, and nobody else; `seconds` none means until a person lifts it."""
    values = {"workspace_id": workspace_id, "subject": f"channel:{channel_id}", "reason": reason, "by": by, "seconds": seconds}
    await pen.execute(SQL["rest"], values)


async def is_held(pen: Connection, subjects: Sequence[str]) -> bool:
    """True when a pause is in force on any of `subjects`."""
    row = await (await pen.execute(SQL["held"], {"subjects": list(subjects)})).fetchone()
    return bool(row and row[0])


async def overdue(pen: Connection, *, most: int) -> dict[int, list[int]]:
    """Ids of rows that the sweeper should look at, at most `most` of each channel, by channel."""
    found: dict[int, list[int]] = {}
    for id, channel_id in await (await pen.execute(SQL["overdue"], {"most": most})).fetchall():
        found.setdefault(channel_id, []).append(id)
    return found


async def take_sweep(pen: Connection, channel_id: int, *, seconds: float) -> bool:
    """True when nobody else sweeps this channel; held until `leave_sweep`, for so many seconds at most."""
    return (await pen.execute(SQL["take_sweep"], {"channel_id": channel_id, "seconds": seconds})).rowcount == 1


async def leave_sweep(pen: Connection, channel_id: int) -> None:
    """Let somebody else sweep this channel."""
    await pen.execute(SQL["leave_sweep"], {"channel_id": channel_id})


def _raw(id: int, reply: Reply) -> dict[str, Any]:
    return {"id": id, "kind": reply.kind.value, "raw": reply.raw, "note": storable(reply.note)}


async def _note(pen: Connection, id: int, sighting: Sighting, by: str) -> None:
    values = {"id": id, "by": by, "answer": sighting.answer.value, "receipt": sighting.receipt, "raw": sighting.raw}
    await pen.execute(SQL["note_look_up"], values)


def _settling(verdicts: Sequence[tuple[int, Verdict]], by: str, max_attempts: int, can_look_up: bool) -> dict[str, Any]:
    return {
        "ids": [id for id, _ in verdicts],
        "states": [verdict.state.value for _, verdict in verdicts],
        "receipts": [verdict.receipt for _, verdict in verdicts],
        "reasons": [verdict.reason for _, verdict in verdicts],
        "retries": [verdict.retry_in for _, verdict in verdicts],
        "counts": [verdict.counts for _, verdict in verdicts],
        "by": by,
        "max_attempts": max_attempts,
        "can_look_up": can_look_up,
    }


def _stand_alone(pen: Connection) -> None:
    if pen.info.transaction_status != TransactionStatus.IDLE:
        raise RuntimeError("the pen writes in transactions of its own: commit, call, commit")
