"""The sandbox: a provider that misbehaves as it is told, for tests and for people who try Signoff out. It sends nothing anywhere."""
