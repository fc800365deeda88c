"""What a run is going to be: plans and faults as a pure function of the seed and the length."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from config.sandbox.behaviours import RESTS, behaviour_of, names

TENANTS = ("acme", "globex", "initech")
# channel: (its front, what it does with a key seen before)
CHANNELS = {
    "http": ("http", "ignored"), "keyed": ("http", "honoured"), "refusing": ("http", "refused"), "mail": ("smtp", ""),
    "told": ("http", "ignored"),
}  # fmt: skip
TOLD = "told"  # its provider calls back: what was lost had arrived, what was done came back
TOUCHY = "touchy"  # takes the targets by which a provider asks for rest, so that they rest no other channel
LOOK_UPS = ("absent-2", "500-2", "silent-1", "garbage-2", "no-receipt-2", "absent", "500")
ACTS = {  # the nemesis's: how long each lasts, in seconds
    "kill worker": 0.5, "kill child": 0.0, "stop worker": 15.0, "stop child": 15.0, "kill beat": 1.0, "stop beat": 4.0,
    "two beats": 6.0, "kill web": 0.5, "flush broker": 0.0, "wipe broker": 1.5, "restart database": 0.0, "cut connections": 0.0,
    "repeat messages": 0.0, "kill provider": 1.0,
}  # fmt: skip
AGAIN = re.compile(r"(rcpt|data)-(drop|reset|silent|garbage)|(rcpt|data|dot)-4\d\d")
LEAVING, TELLING = (
    4,
    3,
)  # of so many plans one has targets that opt out, and one is followed by a plan of which the provider tells later
LULL = (0.9, 1.8)  # seconds between two acts


@dataclass(frozen=True)
class Proposal:
    """One plan to come: to whom, by which channel; `twin` asks for the same effects as the plan before it.

    `leaving` are those of its targets that opt out as soon as it is approved.
    """

    tenant: str
    channel: str
    targets: tuple[str, ...]
    twin: bool = False
    leaving: tuple[str, ...] = ()


def acts(seed: int, seconds: float) -> list[tuple[float, str]]:
    """The nemesis's acts and their times: each once in an order of the seed, then by lot."""
    lot = random.Random(f"{seed} acts")
    first = sorted(lot.sample(sorted(ACTS), len(ACTS)), key=lambda name: ACTS[name])  # the longest first: each has its time
    planned, at = [], 3.0
    while first or at < seconds:
        planned.append((at, first.pop() if first else lot.choice(sorted(ACTS))))
        at += lot.uniform(*LULL)
    return planned


def proposals(seed: int) -> Iterator[Proposal]:
    """Plans without end. Names come round in turn, so that a run of a minute meets them all."""
    lot = random.Random(f"{seed} plans")
    wanted = {front: _in_turn(seed, front) for front in ("http", "smtp")}
    number = 0
    touchy = Proposal("acme", TOUCHY, tuple(f"{name}+{n}@sandbox.example" for n, name in enumerate(_resting())))
    yield touchy
    ahead: list[str] = []
    while True:
        number += 1
        ahead = ahead or lot.sample(("http", "http", "keyed", "refusing", "mail", "mail"), 6)
        tenant, channel = lot.choice(TENANTS), ahead.pop()
        front = CHANNELS[channel][0]
        count = lot.randint(16, 28)
        targets = [
            f"{next(wanted[front])}+{number}.{n}@sandbox.example" if n % 2 else f"reader{number}.{n}@readers.example"
            for n in range(count)
        ]
        readers = tuple(target for target in targets if target.startswith("reader"))
        proposal = Proposal(tenant, channel, tuple(targets), leaving=readers[-2:] if number % LEAVING == 0 else ())
        yield proposal
        if lot.random() < 0.2:
            yield Proposal(tenant, channel, proposal.targets, twin=True)
        if number % TELLING == 0:
            yield Proposal("acme", TOLD, tuple(_told(number, lot)))
        if number == 6:  # once more, in case the first met a stopped worker
            yield touchy


def _told(number: int, lot: random.Random) -> Iterator[str]:
    """Targets of which the provider tells later, truthfully: what was accepted was delivered, and some of it came back."""
    # A challenge is left out: what is created by it is not delivered yet.
    accepted = [name for name in _names("http") if name.startswith("accepted-") and "challenge" not in name]
    for n, name in enumerate(lot.sample(accepted, min(6, len(accepted)))):
        yield f"{name}.absent+delivered-{number}.{n}@sandbox.example"
        yield f"reader{number}.{n}+bounced@readers.example"


def needed(seed: int) -> int:
    """How many proposals it takes to meet every name."""
    wanted, met = expected_names(), set()
    for number, proposal in enumerate(proposals(seed), 1):
        front = CHANNELS.get(proposal.channel, ("http", ""))[0]
        met |= {behaviour_of(target, front).name.partition(".")[0] for target in proposal.targets}
        if wanted <= met:
            return number
    raise AssertionError("proposals never end")


def expected_names() -> set[str]:
    """The names that a whole run must meet: C1."""
    return {*_names("http"), *_names("smtp"), *_resting()}


def _resting() -> list[str]:
    return [name for name in names("http") if RESTS.fullmatch(name)]


def _names(front: str) -> list[str]:
    """Every name of this front that rests no channel. What would be tried again for minutes happens once only."""
    if front == "http":
        return [*(name for name in names(front) if not RESTS.fullmatch(name)), "once-429"]
    return [f"once-{name}" if AGAIN.fullmatch(name) else name for name in names(front)]


def _in_turn(seed: int, front: str) -> Iterator[str]:
    """Every name of this front that rests no channel, shuffled, again and again; look-ups lie for some of what was lost."""
    lot = random.Random(f"{seed} {front}")
    every, lying = _names(front), 0.0
    while True:
        for name in lot.sample(every, len(every)):
            yield f"{name}.{lot.choice(LOOK_UPS)}" if name.startswith("accepted-") and lot.random() < lying else name
        lying = 0.4  # from the second turn on
