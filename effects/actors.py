"""Who acts. A ruling takes a Human and nothing else; no worker can make one (the import contracts see to that)."""

from dataclasses import dataclass

from accounts.models import Membership, User
from accounts.roles import Act, may
from audit.chain import Actor


@dataclass(frozen=True)
class Human:
    """A named person acting in one workspace, from one address."""

    user: User
    workspace_id: int
    address: str = ""

    def __str__(self) -> str:
        return str(self.user)

    @property
    def actor(self) -> Actor:
        """The person as the record names them."""
        return Actor("human", self.user.pk, f"{self.user} <{self.user.email}>", self.address)

    def may(self, act: Act) -> bool:
        """Whether they may do `act` here: read now, inside the act's transaction, not when the page was drawn."""
        membership = Membership.objects.filter(workspace_id=self.workspace_id, user=self.user, user__is_active=True).first()
        return membership is not None and may(membership.role, act)
