"""What can go wrong with an act; each message is a sentence for the person, or the agent, who reads it."""

from typing import Any


class Refused(Exception):
    """The act is not allowed as asked; nothing was changed."""


class LostRace(Refused):
    """It is no longer what was shown, or somebody was first. `current` is the thing as it stands now."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current
