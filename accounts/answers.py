"""What a person's POST comes to: done, given back as it was typed, or too late. One way for every act."""

from collections.abc import Callable
from typing import Protocol

from django.forms import Form
from django.http import HttpResponse

from accounts.errors import LostRace, Refused


class Again(Protocol):
    """Draws the page once more, as things stand now: with one sentence, or with the form as it was typed."""

    def __call__(self, *, status: int, said: str = "", form: Form | None = None) -> HttpResponse: ...


def answer_to(form: Form, act: Callable[[], str], *, again: Again, back: Callable[[str], HttpResponse]) -> HttpResponse:
    """Do the act and go `back` with its sentence; 422 gives the form back, 409 says who or what was first."""
    if not form.is_valid():
        return again(status=422, form=form)
    try:
        done = act()
    except LostRace as lost:
        return again(status=409, said=str(lost))
    except Refused as refused:
        form.add_error(None, str(refused))
        return again(status=422, form=form)
    return back(done)
