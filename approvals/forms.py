"""What people type on the pages of plans."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from approvals.coverage import FIGURES
from approvals.models import PlanState
from effects.models import Channel

STATES = [("", "every state"), *((state.value, state.value.replace("_", " ")) for state in PlanState)]
ROW_STATES = [("", "every row"), *((name, name) for name in (*FIGURES, "excluded"))]
MOST_AT_ONCE = 1_000


def words(label: str, *, required: bool = True, help_text: str = "") -> forms.CharField:
    """A field for a sentence or two."""
    widget = forms.Textarea(attrs={"rows": 2, "class": "form-control", "maxlength": 2000})
    return forms.CharField(label=label, required=required, max_length=2000, widget=widget, help_text=help_text)


class ApprovalForm(forms.Form):
    """A yes to exactly what was shown: `digest` is the one on screen, `ticked` the warnings acknowledged."""

    digest = forms.CharField(max_length=80, widget=forms.HiddenInput)
    reason = words("Note (optional)", required=False)
    ticked = forms.TypedMultipleChoiceField(required=False, coerce=str)

    def __init__(self, *args: Any, codes: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ticked = self.fields["ticked"]
        assert isinstance(ticked, forms.TypedMultipleChoiceField)
        ticked.choices = [(code, code) for code in codes]


class RejectionForm(forms.Form):
    """A no, for good."""

    digest = forms.CharField(max_length=80, widget=forms.HiddenInput)
    reason = words("Why not?", help_text="The agent and the record are told.")


class ChangesForm(forms.Form):
    """A request for another version."""

    digest = forms.CharField(max_length=80, widget=forms.HiddenInput)
    reason = words("What should change?", help_text="The agent is told; this version is closed.")


class ExclusionForm(forms.Form):
    """Rows to leave out."""

    positions = forms.TypedMultipleChoiceField(coerce=int, error_messages={"required": "Tick at least one row."})
    reason = words("Why are they left out?")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.data.getlist("positions") if self.is_bound else []  # type: ignore[attr-defined]
        numbers = [number for number in chosen if number.isascii() and number.isdigit() and len(number) < 10]
        positions = self.fields["positions"]
        assert isinstance(positions, forms.TypedMultipleChoiceField)
        positions.choices = [(number, number) for number in numbers[:MOST_AT_ONCE]]


class HoldForm(forms.Form):
    """Pausing or stopping: a reason is needed."""

    reason = words("Reason", help_text="Kept in the record, under your name.")


class ResumptionForm(forms.Form):
    """Going on: a reason is welcome."""

    reason = words("Note (optional)", required=False)


class OptOutForm(forms.Form):
    """Who wants nothing more, and through which channel; none of them: through any."""

    targets = forms.CharField(
        label="Who?",
        max_length=200_000,
        widget=forms.Textarea(attrs={"rows": 3, "class": "form-control", "spellcheck": "false", "autocapitalize": "off"}),
        help_text="One address or other target in each line.",
    )
    channel = forms.ModelChoiceField(
        label="Through which channel?",
        queryset=Channel.objects.none(),
        required=False,
        empty_label="any channel",
        to_field_name="slug",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    reason = words("Why, or how did they ask?", help_text="Shown wherever a row is left out for it, and kept in the record.")

    def __init__(self, *args: Any, channels: QuerySet[Channel], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        channel = self.fields["channel"]
        assert isinstance(channel, forms.ModelChoiceField)
        channel.queryset = channels


class LiftForm(forms.Form):
    """Lifting an opt-out."""

    reason = words("What changed?", help_text="Kept in the record, under your name.")


class PlansForm(forms.Form):
    """The list's filter; it lives in the address."""

    state = forms.ChoiceField(required=False, choices=STATES)


class RowsForm(forms.Form):
    """The filter of a plan's rows; it lives in the address."""

    text = forms.CharField(required=False, max_length=300)
    state = forms.ChoiceField(required=False, choices=ROW_STATES)
