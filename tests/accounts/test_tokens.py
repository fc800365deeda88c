"""An agent's token: made once, shown once, kept as a digest, read at every request."""

from datetime import timedelta

import pytest
from django.core import serializers
from django.db.models.functions import Now

from accounts import tokens
from accounts.models import Membership, Token, digest_of
from tests.world import a_token, a_workspace, bob, charlie, secret_of

pytestmark = pytest.mark.django_db


def test_a_token_is_read_by_its_text():
    token, secret = tokens.issue(a_workspace(), name="mailer", owner=bob())
    assert tokens.read(secret) == token
    assert (token.workspace, token.owner) == (a_workspace(), bob())


def test_no_two_tokens_are_alike_and_each_has_256_bits():
    secrets = {tokens.issue(a_workspace(), name=f"mailer {n}", owner=bob())[1] for n in range(20)}
    assert len(secrets) == 20
    assert {len(secret) for secret in secrets} == {len("sgn_") + 43}


def test_the_text_of_a_token_is_kept_nowhere():
    token, secret = tokens.issue(a_workspace(), name="mailer", owner=bob())
    kept = serializers.serialize("json", Token.objects.all())
    assert secret not in kept
    assert secret.startswith(token.prefix)
    assert len(token.prefix) <= 12
    assert token.digest == digest_of(secret)


@pytest.mark.parametrize("change", [{"revoked_at": Now()}, {"expires_at": Now()}, {"expires_at": Now() - timedelta(days=1)}])
def test_a_token_that_ended_is_read_no_more(change):
    secret = secret_of(a_token())
    assert tokens.read(secret)
    Token.objects.update(**change)
    assert tokens.read(secret) is None


@pytest.mark.parametrize("text", ["", "sgn_", "sgn_nonsense", "\0", "é", "x" * 10_000])
def test_what_is_no_token_is_read_as_none(text):
    a_token()
    assert tokens.read(text) is None


def test_a_token_falls_with_the_person_who_answers_for_it():
    token = a_token()
    token.owner.is_active = False
    token.owner.save()
    assert tokens.read(secret_of(token)) is None


def test_nobody_answers_for_a_token_where_they_are_no_member():
    with pytest.raises(tokens.TokenRefused, match="not a member"):
        tokens.issue(a_workspace(), name="mailer", owner=charlie())
    Membership.objects.filter(user=bob()).delete()
    with pytest.raises(tokens.TokenRefused, match="not a member"):
        tokens.issue(a_workspace(), name="mailer", owner=bob_without_a_role())


def bob_without_a_role():
    from accounts.models import User

    return User.objects.get(name="Bob")


def test_a_name_is_given_once_in_a_workspace():
    tokens.issue(a_workspace(), name="mailer", owner=bob())
    with pytest.raises(tokens.TokenRefused, match="already"):
        tokens.issue(a_workspace(), name="mailer", owner=bob())
    with pytest.raises(tokens.TokenRefused, match="name"):
        tokens.issue(a_workspace(), name=" ", owner=bob())
    tokens.issue(a_workspace("globex"), name="mailer", owner=charlie())
