"""The verdict on a case. Each verdict has its own fields, so what was typed for one is kept while another is tried."""

from typing import Any

from django import forms

from reconciliation.words import CHOICES
from runs.forms import Form
from runs.money import MoneyError, parse_amount

REFERENCE = ("happened", "differently", "twice")
EVIDENCE_LABELS = {
    "happened": "How do you know it is ours?",
    "differently": "What is different, and how do you know?",
    "did_not": "The proof that it did not happen",
    "twice": "How do you know, and which is which?",
    "stands": "How do you know that it is right?",
    "noted": "What is true, and what was done about it where?",
}
REFERENCE_LABELS = {"happened": "Their reference", "differently": "Their reference", "twice": "The one that counts"}


def _text(label: str) -> forms.CharField:
    return forms.CharField(label=label, required=False, max_length=200)


class VerdictForm(Form):
    verdict = forms.ChoiceField(
        choices=[(one.key, one.word) for one in CHOICES],
        error_messages={"required": "Choose what is true.", "invalid_choice": "Choose one of the verdicts."},
    )

    def __init__(self, *args: Any, currency: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.currency = currency
        for key in REFERENCE:
            self.fields[f"reference_{key}"] = _text(REFERENCE_LABELS[key])
        for key, label in EVIDENCE_LABELS.items():
            area = forms.Textarea(attrs={"rows": 2})
            self.fields[f"evidence_{key}"] = forms.CharField(label=label, required=False, max_length=4000, widget=area)
        if currency:  # what has no amount can only be recorded with other values
            self.fields["actual_differently"] = forms.CharField(
                label=f"Their amount in {currency}", required=False, max_length=30
            )
        self.fields["other_reference_twice"] = _text("The one to reverse")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        chosen = data.get("verdict", "")
        if chosen in ("", "still"):
            return data
        if chosen in REFERENCE and not data.get(f"reference_{chosen}", "").strip():
            self.add_error(f"reference_{chosen}", "Give the reference the other side has for it.")
        if not data.get(f"evidence_{chosen}", "").strip():
            self.add_error(f"evidence_{chosen}", "Say how you know: it stays in the record.")
        if chosen == "differently" and self.currency:
            self._read_amount(data)
        if chosen == "twice" and data.get("other_reference_twice", "").strip() in (
            "",
            data.get("reference_twice", "").strip(),
        ):
            self.add_error("other_reference_twice", "Give the second record's reference, different from the first.")
        return data

    def _read_amount(self, data: dict[str, Any]) -> None:
        try:
            data["actual_minor"] = parse_amount(text=data.get("actual_differently", ""), currency=self.currency).minor
        except MoneyError as error:
            self.add_error("actual_differently", f"This {error}.")

    def settling(self) -> dict[str, Any]:
        """The arguments of `services.cases.settle` for a valid form."""
        data, chosen = self.cleaned_data, self.cleaned_data["verdict"]
        return {
            "verdict": chosen,
            "evidence": data.get(f"evidence_{chosen}", ""),
            "reference": data.get(f"reference_{chosen}", ""),
            "actual_minor": data.get("actual_minor"),
            "other_reference": data.get("other_reference_twice", "") if chosen == "twice" else "",
        }


class GoneForm(Form):
    """A person's word that a process can never act again."""

    evidence = forms.CharField(
        label="How do you know that it can never run again?",
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say how you know: it stays in the record."},
    )

    def __init__(self, data: Any = None, *, process: str) -> None:
        super().__init__(data, auto_id=f"id_gone_{process}_%s")
        self.process = process
        self.fields["evidence"].widget.attrs["form"] = f"gone-{process}"  # it stands inside the verdicts' form
