from tests.approvals.sends import no_broker
from tests.effects.pens import workplace

__all__ = ["no_broker", "workplace"]
