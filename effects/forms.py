"""What people type on the pages of the ledger."""

from typing import Any

from django import forms

from effects.holding import LONGEST
from effects.models import STATES
from effects.queries import Search
from effects.states import State

RULED = [
    (State.DONE.value, "It arrived"),
    (State.FAILED.value, "It did not happen"),
    (State.STRANDED.value, "It exists, and can never complete"),
    (State.REVOKED.value, "It is taken back"),
]


def words(label: str, *, rows: int = 2, required: bool = True, help_text: str = "") -> forms.CharField:
    """A field for a sentence or two."""
    widget = forms.Textarea(attrs={"rows": rows, "class": "form-control", "maxlength": 2000})
    return forms.CharField(label=label, required=required, max_length=2000, widget=widget, help_text=help_text)


class ResolutionForm(forms.Form):
    """What became of an unknown effect, as a person found out. `state` is the state that was on their screen."""

    to = forms.ChoiceField(label="What happened", choices=RULED, widget=forms.RadioSelect)
    evidence = words("Evidence", required=False, help_text="What you saw: a receipt, a log line, the recipient's own word.")
    reason = words("Reason", help_text="Kept in the record, under your name.")
    state = forms.ChoiceField(choices=[(state, state) for state in STATES], widget=forms.HiddenInput)
    again = forms.BooleanField(label="Send it again", required=False)


class RevocationForm(forms.Form):
    """Taking an effect back. `state` is the state that was on screen."""

    reason = words("Reason", help_text="Kept in the record, under your name.")
    state = forms.ChoiceField(choices=[(state, state) for state in STATES], widget=forms.HiddenInput)


class NewsForm(forms.Form):
    """Having seen late news. `callback` is the one that was on screen."""

    reason = words("What did you do about it?", help_text="Kept in the record, under your name.")
    callback = forms.IntegerField(min_value=1, max_value=2**62, widget=forms.HiddenInput)


class EpochForm(forms.Form):
    """Deliberately doing a thing again that was done. `epoch` is the epoch that was on screen."""

    reason = words("Why should it happen again?", help_text="Kept in the record, under your name.")
    epoch = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class PauseForm(forms.Form):
    """Holding a channel or the workspace."""

    reason = words("Reason", help_text="Kept in the record, under your name.")
    minutes = forms.IntegerField(
        label="Minutes (optional)",
        required=False,
        min_value=1,
        max_value=LONGEST,
        widget=forms.NumberInput(attrs={"class": "form-control", "inputmode": "numeric"}),
        help_text="Left empty: until somebody lets it go on.",
    )


class ResumeForm(forms.Form):
    """Ending a pause before its time."""

    reason = words("Reason", help_text="Kept in the record, under your name.")


class SearchForm(forms.Form):
    """The ledger's filter; it lives in the address."""

    target = forms.CharField(required=False, max_length=300)
    state = forms.ChoiceField(required=False, choices=[("", "every state"), *((state, state) for state in STATES)])
    channel = forms.CharField(required=False, max_length=50)
    key = forms.CharField(required=False, max_length=80)
    plan = forms.IntegerField(required=False, min_value=1, max_value=2**62)
    run = forms.CharField(required=False, max_length=80)

    @property
    def search(self) -> Search:
        """The filter; a part that makes no sense narrows nothing and is marked on the page."""
        self.is_valid()
        kept: dict[str, Any] = {name: value for name, value in self.cleaned_data.items() if value}
        return Search(**kept)
