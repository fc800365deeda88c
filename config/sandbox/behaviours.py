"""What the sandbox does with a target: a pure function of the target's name, or of (seed, target). Pure.

A name stands in the target's local part: `[once-][slow-][accepted-]ANSWER[.LOOK-UP][+TAG]`, as in `accepted-500+17@sandbox.example`
or `accepted-reset.absent-3`. Any other target is ordinary: it is accepted, and answered with a receipt.
"""

import hashlib
import re
from dataclasses import dataclass

# Retry-After as providers write it; by the word after `429-`. The plain 429 says 1.
RETRY_AFTER: dict[str, tuple[str, ...]] = {
    "": ("1",),
    "none": (),
    "zero": ("0",),
    "negative": ("-5",),
    "fraction": ("1.5",),
    "words": ("in a while",),
    "huge": ("9" * 40,),
    "past": ("Mon, 01 Jan 2024 00:00:00 GMT",),
    "date": ("Fri, 31 Dec 9999 23:59:59 GMT",),
    "twice": ("1", "7200"),
}
STATUSES = (
    *(202, 204, 302, 304, 307, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 418, 422, 451),
    *(500, 501, 502, 503, 504, 507, 529),
)
# Created, and complete once its challenge is answered: what the answer meets, 200 or that status. Only of the last are there two versions.
CHALLENGES = {"challenge": 200, "challenge-410": 410, "challenge-503": 503}
# Each of these exists in two versions: filed before it (`accepted-reset`), and not filed (`reset`).
HTTP_WORDS = (
    *("reset", "closed", "silent", "cut", "cut-head", "unreadable", "empty", "no-receipt", "odd-receipt", "garbage", "drip"),
    *("huge", "two-lengths", "early", *CHALLENGES),
)
SMTP_STEPS = ("mail", "rcpt", "data", "dot")
SMTP_ENDS = ("drop", "reset", "silent", "garbage")
SMTP_WORDS = (
    *("rcpt-451", "rcpt-550", "rcpt-421", "rcpt-550-drop", "rcpt-drop", "rcpt-reset", "rcpt-silent", "rcpt-garbage"),
    *("data-451", "data-554", "data-421", "data-drop", "data-reset", "data-silent", "data-garbage", "body-drop", "body-reset"),
    *("dot-452", "dot-554", "dot-421", "dot-drop", "dot-reset", "dot-silent", "dot-garbage"),
)
FROM_HTTP = {
    "closed": "dot-drop",
    "reset": "dot-reset",
    "silent": "dot-silent",
    "garbage": "dot-garbage",
}  # one plan, either front

HTTP_ANSWER = re.compile("|".join([r"[1-9]\d\d", *(f"429-{word}" for word in RETRY_AFTER if word), *HTTP_WORDS]))
SMTP_ANSWER = re.compile(
    rf"(?:{'|'.join(SMTP_STEPS)})-(?:[45]\d\d(?:-drop)?|{'|'.join(SMTP_ENDS)})|body-(?:drop|reset)|dot-no-receipt"
)
LOOK_UP = re.compile(r"(absent|500|silent|garbage|no-receipt)(?:-(\d{1,4}))?")


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a look-up is answered: the truth, or `answer` instead of it, for `seconds` after the call (none: always)."""

    answer: str = ""
    seconds: float | None = None

    def at(self, age: float) -> str:
        """The answer at this many seconds after the call; empty: the truth."""
        return self.answer if self.seconds is None or age < self.seconds else ""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one call meets. `name` is as it stands in the target, empty for an ordinary one."""

    name: str = ""
    answer: str = ""  # empty: a receipt
    accepts: bool = True  # files it, which is a delivery, before it answers
    once: bool = False  # the target's first call only; then it is ordinary
    slow: bool = False
    look_up: LookUp = LookUp()

    @property
    def challenge(self) -> int:
        """The status that the answer to its challenge meets; 0: there is no challenge."""
        return CHALLENGES.get(self.answer, 0)

    def for_call(self, number: int) -> "Behaviour":
        """What the n-th call for this target meets (1 is the first)."""
        return Behaviour(self.name, look_up=self.look_up) if self.once and number > 1 else self


ORDINARY = Behaviour()


def behaviour_of(target: str, front: str, *, seed: int = 0, faults: float = 0.0) -> Behaviour:
    """What `target` meets at this front (`http` or `smtp`): what its name says, else what (seed, target) draws.

    `faults` is the share, 0 to 1, of targets without a name that misbehave all the same.
    """
    local = target.rpartition("@")[0] or target
    words, _, look_up = local.partition("+")[0].lower().partition(".")
    named = _named(words, front)
    if named is None and faults:
        drawn = hashlib.sha256(f"{seed}:{target}".encode()).digest()
        if int.from_bytes(drawn[:4]) < faults * 2**32:
            names = DRAWN[front]
            named = _named(names[int.from_bytes(drawn[4:8]) % len(names)], front)
    chosen = named or ORDINARY
    asked = LOOK_UP.fullmatch(look_up)
    if asked is None:
        return chosen
    lies = LookUp(asked[1], float(asked[2]) if asked[2] else None)
    name = f"{chosen.name or 'ordinary'}.{look_up}"
    return Behaviour(name, chosen.answer, chosen.accepts, chosen.once, chosen.slow, lies)


def _named(words: str, front: str) -> Behaviour | None:
    """The behaviour that these words name, or nothing."""
    rest, once = _without(words, "once-")
    rest, slow = _without(rest, "slow-")
    if rest in ("slow", "ordinary"):
        return Behaviour(words, once=once, slow=slow or rest == "slow")
    rest, accepts = _without(rest, "accepted-")
    if front == "smtp":
        rest = FROM_HTTP.get(rest, rest)
    pattern = HTTP_ANSWER if front == "http" else SMTP_ANSWER
    if not pattern.fullmatch(rest) or (front == "smtp" and accepts and not rest.startswith("dot-")):
        return None
    if rest == "dot-no-receipt" and not accepts:  # a 250 is a yes, so there is no other version
        return None
    if accepts and rest in ("challenge", "challenge-410"):  # what completes it is the answer alone
        return None
    return Behaviour(words, rest, accepts, once, slow)


def _without(words: str, prefix: str) -> tuple[str, bool]:
    return words.removeprefix(prefix), words.startswith(prefix)


def is_definite(answer: str) -> bool:
    """True for an answer by which a provider says that nothing was created. `accepted-` before one of these is a lie."""
    return bool(re.fullmatch(r"40[01345]|41[0345]|422|429(-.*)?|451|(mail|rcpt|data|dot)-[45]\d\d(-drop)?", answer))


def names(front: str) -> list[str]:
    """Every name worth trying at this front, each in its two versions where both are honest."""
    if front == "smtp":
        after_dot = [f"accepted-{name}" for name in SMTP_WORDS if name.startswith("dot-") and not is_definite(name)]
        return ["slow", *SMTP_WORDS, *after_dot, "accepted-dot-no-receipt"]
    odd = [f"429-{word}" if word else "429" for word in RETRY_AFTER]
    plain = [*map(str, STATUSES), *odd, *HTTP_WORDS]
    twice = [name for name in plain if not is_definite(name) and name not in ("challenge", "challenge-410")]
    return ["slow", *plain, *(f"accepted-{name}" for name in twice)]


# What (seed, target) may draw: nothing that rests a channel for long.
RESTS = re.compile(r"40[13]|429.*")
DRAWN = {
    "http": [*(name for name in names("http") if not RESTS.fullmatch(name)), "once-429"],
    "smtp": [*names("smtp"), "once-rcpt-451"],
}
