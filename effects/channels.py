"""Channels: add one, describe it, and open the provider behind it."""

from typing import Any

from django.conf import settings as django_settings
from django.db import IntegrityError, transaction

from accounts.models import Workspace
from audit import chain
from audit.chain import Actor
from effects import ledger, providers, signatures
from effects.errors import BadChannel
from effects.models import Channel
from effects.providers import Account, BadSettings, Provider
from effects.secrets import CALLBACK, for_calls, seal, unseal


@transaction.atomic
def add(
    workspace: Workspace, *, slug: str, provider: str, settings: dict[str, str], secrets: dict[str, str], by: Actor
) -> Channel:
    """A new channel. Raises BadChannel, naming the setting, when it could not work."""
    try:
        chosen = _read(provider, settings)
        _check_secrets(secrets)
        _provider(provider, chosen, secrets)
    except BadSettings as error:
        raise BadChannel(str(error)) from None
    try:
        with transaction.atomic():
            channel = Channel.objects.create(
                workspace=workspace, slug=slug, provider=provider, settings=chosen, secrets=seal(secrets)
            )
    except IntegrityError:
        raise BadChannel(f"there is a channel {slug!r} in this workspace already") from None
    chain.append(
        "channel added",
        workspace_id=workspace.pk,
        by=by,
        on=("channel", channel.pk, slug),
        after={"provider": provider, "settings": chosen, "secrets": sorted(secrets)},
    )
    return channel


@transaction.atomic
def change_secrets(channel: Channel, *, changed: dict[str, str], by: Actor) -> Channel:
    """The channel with these secrets set; an empty one is taken away, all others stay. Raises BadChannel when it could not work so."""
    locked = Channel.objects.select_for_update().get(pk=channel.pk)
    try:
        secrets = {name: value for name, value in (unseal(locked.secrets) | changed).items() if value}
        _check_secrets(secrets)
        _provider(locked.provider, setting_values(locked), secrets)
    except ValueError as error:
        raise BadChannel(str(error)) from None
    locked.secrets = seal(secrets)
    locked.save(update_fields=["secrets"])
    after = {"changed": sorted(changed), "secrets": sorted(secrets)}
    on = ("channel", locked.pk, locked.slug)
    chain.append("channel secrets changed", workspace_id=locked.workspace_id, by=by, on=on, after=after)
    return locked


def callback_keys(channel: Channel) -> list[bytes]:
    """The keys that callbacks of this channel are signed with; none: it takes no callbacks.

    Raises ValueError when no key opens its secrets.
    """
    text = unseal(channel.secrets).get(CALLBACK, "")
    return signatures.read_secrets(text) if text else []


def open_provider(channel: Channel) -> Provider:
    """The provider behind a channel, ready to send; the caller closes it."""
    return _provider(channel.provider, setting_values(channel), unseal(channel.secrets))


def setting_values(channel: Channel) -> dict[str, Any]:
    """All settings of a channel, those left unset at their defaults."""
    known = providers.settings_of(channel.provider)
    return {name: channel.settings.get(name, setting.default) for name, setting in known.items()}


def setting(channel: Channel, name: str) -> Any:
    """One setting of a channel."""
    return setting_values(channel)[name]


def describe(channel: Channel) -> list[tuple[str, str, str]]:
    """Each setting as (name, value, what it is for); secrets appear by name only."""
    known = providers.settings_of(channel.provider)
    lines = [(name, str(value), known[name].help) for name, value in setting_values(channel).items()]
    return lines + [(name, "set, not shown", "a secret") for name in sorted(unseal(channel.secrets))]


def deadline_seconds(channel: Channel) -> float:
    """Seconds from reservation after which nobody is still making the call."""
    timeout = float(setting(channel, "timeout"))
    return ledger.START_WITHIN + open_provider(channel).preamble + timeout + ledger.SLACK


def _read(provider: str, settings: dict[str, str]) -> dict[str, Any]:
    known = providers.settings_of(provider)
    chosen: dict[str, Any] = {}
    for name, text in settings.items():
        if name not in known:
            raise BadSettings(f"{provider} has no setting {name!r}; it has {', '.join(sorted(known))}")
        try:
            chosen[name] = known[name].read(text)
        except ValueError:
            raise BadSettings(f"{name} must be a number, not {text!r}") from None
    _in_bounds(chosen)
    return chosen


def _check_secrets(secrets: dict[str, str]) -> None:
    for name, value in secrets.items():
        if name != CALLBACK and name.lower().replace("-", "_") == CALLBACK:
            raise BadSettings(f"the secret {name} must be written {CALLBACK}: any other name would be sent with every call")
        if name == CALLBACK:
            try:
                signatures.read_secrets(value)
            except ValueError as error:
                raise BadSettings(f"{CALLBACK} {error}") from None


def _in_bounds(chosen: dict[str, Any]) -> None:
    bounds = {"timeout": (0.1, 900), "settle_window": (0, 86_400), "window": (1, 512), "max_attempts": (1, 10)}
    bounds |= {"rate": (0, 100_000), "port": (1, 65_535)}
    for name, (least, most) in bounds.items():
        if name in chosen and not least <= chosen[name] <= most:
            raise BadSettings(f"{name} must be between {least} and {most}, not {chosen[name]}")
    if chosen.get("target_kind", "auto") not in ("auto", "email", "opaque"):
        raise BadSettings(f"target_kind must be auto, email or opaque, not {chosen['target_kind']!r}")


def _provider(name: str, chosen: dict[str, Any], secrets: dict[str, str]) -> Provider:
    known = providers.settings_of(name)
    complete = {key: chosen.get(key, entry.default) for key, entry in known.items()}
    account = Account(complete, for_calls(secrets), loopback=django_settings.SIGNOFF_LOOPBACK_PROVIDERS)
    return providers.register[name](account)
