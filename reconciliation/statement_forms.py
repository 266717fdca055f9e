"""The forms of statements: a period to read, a file to take in, and what its columns mean."""

import datetime as dt
import zoneinfo
from typing import Any

from django import forms
from django.utils import timezone

from reconciliation import csvfile
from reconciliation.columns import CONVENTIONS, FORMATS, POINT, Columns
from runs.forms import Form, sensible_day
from runs.money import MoneyError, currency_code
from runs.tools.registry import LEDGERS, SYSTEMS

NONE = ""
_DAY = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


def _titles(names: Any) -> list[tuple[str, str]]:
    return [(name, SYSTEMS[name].title) for name in names]


class PeriodForm(Form):
    """Days in the viewer's own zone; the last one counts whole, or as far as it is over."""

    system = forms.ChoiceField(label="System")
    first = forms.DateField(label="First day", widget=_DAY, input_formats=["%Y-%m-%d"])
    last = forms.DateField(label="Last day", widget=_DAY, input_formats=["%Y-%m-%d"])

    def __init__(self, data: Any = None, *, now: dt.datetime) -> None:
        today = timezone.localtime(now).date()
        super().__init__(data, initial={"first": today - dt.timedelta(days=6), "last": today})
        self.now = now
        self.fields["system"].choices = _titles(LEDGERS)  # type: ignore[attr-defined]

    def clean_first(self) -> dt.date:
        return sensible_day(day=self.cleaned_data["first"])

    def clean_last(self) -> dt.date:
        return sensible_day(day=self.cleaned_data["last"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        first, last = data.get("first"), data.get("last")
        if first and last and first > last:
            self.add_error("last", "The last day is before the first.")
        if first and first > timezone.localtime(self.now).date():
            self.add_error("first", "That day has not begun yet.")
        return data

    def period(self, *, over: dt.datetime) -> tuple[dt.datetime, dt.datetime]:
        """From the first moment of the first day to the end of the last one, or to `over` if that comes first."""
        zone = timezone.get_current_timezone()
        days = self.cleaned_data["first"], self.cleaned_data["last"] + dt.timedelta(days=1)
        since, until = (dt.datetime.combine(day, dt.time(), tzinfo=zone) for day in days)
        return since, min(until, over)


class UploadForm(Form):
    """One file. Its size is looked at before anything of it is read."""

    file_system = forms.ChoiceField(label="System it comes from")
    file = forms.FileField(
        label="File",
        help_text="Columns parted by comma, semicolon or tab, their names in the first line; at most 10 MB and 100,000 "
        "lines.",
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".csv,.txt,.tsv,text/csv"}),
        error_messages={"required": "Choose a file."},
    )

    def __init__(self, data: Any = None, files: Any = None) -> None:
        super().__init__(data, files)
        self.fields["file_system"].choices = _titles(SYSTEMS)  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > csvfile.MAX_BYTES:
            raise forms.ValidationError("The file is larger than 10 MB. Export a shorter period.")
        return file


class ColumnsForm(Form):
    """Which column holds what. `header` is the file's first line."""

    reference = forms.ChoiceField(label="Their reference")
    amount = forms.ChoiceField(label="Amount")
    convention = forms.ChoiceField(label="How amounts are written", choices=list(CONVENTIONS.items()))
    minus = forms.BooleanField(label="Every amount carries a minus sign", required=False)
    currency = forms.ChoiceField(label="Currency", required=False)
    currency_fixed = forms.CharField(
        label="Currency of every line", required=False, max_length=3, help_text="Where no column says it: USD, EUR, …"
    )
    at = forms.ChoiceField(label="Date")
    date_format = forms.ChoiceField(label="How dates are written", choices=list(FORMATS.items()))
    zone = forms.ChoiceField(label="Time zone of dates without one")
    identity = forms.ChoiceField(
        label="Our identity", required=False, help_text="What we send along as operation_identity, if the file has it."
    )
    account = forms.ChoiceField(label="Account", required=False)
    status = forms.ChoiceField(
        label="Status",
        required=False,
        help_text="Lines that say void, voided, cancelled or reversed stand for nothing.",
    )

    def __init__(self, data: Any = None, *, header: list[str], remembered: dict[str, Any] | None, zone: str) -> None:
        start = {"zone": zone, "convention": POINT, "date_format": "iso", **_guessed(header), **(remembered or {})}
        super().__init__(data, initial=start)
        places = [(str(place), name or f"column {place + 1}") for place, name in enumerate(header)]
        for name in ("reference", "amount", "at", "currency", "identity", "account", "status"):
            field = self.fields[name]
            none = "Choose a column" if field.required else "The file has none"
            field.choices = [(NONE, none), *places]  # type: ignore[attr-defined]
            field.error_messages["required"] = "Choose the column."
        zones = sorted(zoneinfo.available_timezones() | {"UTC"})
        self.fields["zone"].choices = [(one, one) for one in zones]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        fixed = data.get("currency_fixed", "").strip().upper()
        if not data.get("currency") and not fixed:
            self.add_error("currency", "Choose the column, or give the currency of every line.")
        if fixed and data.get("currency"):
            self.add_error("currency_fixed", "Leave it empty: a column says the currency of each line.")
        elif fixed:
            try:
                data["currency_fixed"] = currency_code(fixed)
            except MoneyError as error:
                self.add_error("currency_fixed", f"This {error}.")
        chosen = [data.get(one) for one in ("reference", "amount", "at", "currency", "status") if data.get(one)]
        if len(chosen) != len(set(chosen)):
            self.add_error(None, "Two of reference, amount, date, currency and status are the same column.")
        return data

    def columns(self) -> Columns:
        """What a valid form says."""
        data = self.cleaned_data

        def place(name: str) -> int | None:
            return int(data[name]) if data.get(name) else None

        return Columns(
            reference=int(data["reference"]),
            amount=int(data["amount"]),
            at=int(data["at"]),
            currency=place("currency"),
            currency_fixed=data.get("currency_fixed", ""),
            identity=place("identity"),
            account=place("account"),
            status=place("status"),
            convention=data["convention"],
            minus=data["minus"],
            date_format=data["date_format"],
            zone=data["zone"],
        )


_NAMES = {
    "reference": ("reference", "number", "credit note number", "credit note", "document", "id"),
    "amount": ("amount", "total"),
    "at": ("created", "created (utc)", "date", "created at", "issued", "booked"),
    "currency": ("currency",),
    "identity": ("operation_identity", "operation_identity (metadata)", "identity"),
    "account": ("customer", "customer id", "account"),
    "status": ("status", "state"),
}


def _guessed(header: list[str]) -> dict[str, int]:
    """Columns whose names leave little doubt; a person looks at them all the same."""
    plain = [name.casefold() for name in header]
    found = {field: [plain.index(one) for one in names if one in plain] for field, names in _NAMES.items()}
    return {field: places[0] for field, places in found.items() if places}
