"""allauth, told that nobody signs up by a form: people are added with `manage.py member add`."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedDoor(DefaultAccountAdapter):
    """The account adapter: sign-up is closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
