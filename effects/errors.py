"""What can go wrong with a ruling or a channel; each message is a sentence for the person who reads it."""

from typing import Any


class Refused(Exception):
    """The act is not allowed as asked; nothing was changed."""


class LostRace(Refused):
    """Somebody or something else moved the row first. `current` is the row as it stands now."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current


class BadChannel(Refused):
    """A channel's settings cannot work; the message names the setting."""
