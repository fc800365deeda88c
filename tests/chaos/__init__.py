"""Chaos: Signoff under seeded faults, held against the journal of a provider of our own by a checker that knows none of its code."""
