"""What can be wrong with a channel."""

from accounts.errors import Refused


class BadChannel(Refused):
    """A channel's settings cannot work; the message names the setting."""
