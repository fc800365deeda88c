from tests.effects.pens import workplace

__all__ = ["workplace"]
