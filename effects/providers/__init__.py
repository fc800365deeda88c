"""The register of providers: a new one is one file and one line here."""

from effects.providers.base import COMMON, Account, BadSettings, Provider, Setting
from effects.providers.http import Http
from effects.providers.smtp import Smtp

register: dict[str, type[Provider]] = {provider.name: provider for provider in (Http, Smtp)}


def settings_of(name: str) -> dict[str, Setting]:
    """Every setting a channel of provider `name` has. Raises BadSettings when there is no such provider."""
    if name not in register:
        raise BadSettings(f"provider must be one of {', '.join(sorted(register))}, not {name!r}")
    return COMMON | register[name].settings


__all__ = ["Account", "BadSettings", "Provider", "register", "settings_of"]
