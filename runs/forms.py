"""The base of every form: what is wrong with a field is said in words that name it and say how to put it right."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import Promise

Params = Mapping[str, Any]

# what a field takes, by its class; the first that fits counts, so a class comes before those it is made from
_TAKES: tuple[tuple[type[forms.Field], str], ...] = (
    (forms.FloatField, "a number, such as 2.5"),
    (forms.DecimalField, "a number, such as 2.5"),
    (forms.IntegerField, "a whole number, such as 3"),
    (forms.DateField, "a date, such as 2026-11-30"),
    (forms.DateTimeField, "a date and a time, such as 2026-11-30 14:00"),
    (forms.TimeField, "a time, such as 14:00"),
    (forms.DurationField, "a length of time, such as 01:30:00"),
    (forms.EmailField, "a mail address, such as name@example.com"),
    (forms.URLField, "a web address, such as https://example.com"),
    (forms.UUIDField, "an id, such as 0b8e1f2a-5c3d-4e6f-8a9b-0c1d2e3f4a5b"),
    (forms.JSONField, 'JSON, such as {"name": "value"}'),
    (forms.GenericIPAddressField, "a network address, such as 192.0.2.1"),
    (forms.SlugField, "letters, digits, hyphens and underscores, such as first-try"),
)


class PlainWords:
    """For a form of any origin: Django's own sentences, which name neither field nor remedy, are said in ours.

    What a field, a validator or a `clean` says in words of its own stays: those are plain text, while Django's wait to
    be translated.
    """

    def add_error(self, field: str | None, error: Any) -> None:
        if field is not None and isinstance(error, ValidationError) and not hasattr(error, "error_dict"):
            error = ValidationError([self._in_words(field, one) for one in error.error_list])
        super().add_error(field, error)  # type: ignore[misc]  # the form's, which stands behind this one

    def _in_words(self, name: str, error: ValidationError) -> ValidationError:
        if not isinstance(error.message, Promise) and error.code != "overflow":  # whose words Django has put together
            return error
        field, label = self.fields[name], f"“{self[name].label}”"  # type: ignore[attr-defined,index]
        said = sentence(field=field, label=label, code=error.code or "", params=error.params or {})
        return error if said is None else ValidationError(said, code=error.code)


class Form(PlainWords, forms.Form):
    """Every form of the product is one of these."""


def sensible_day(*, day: dt.date) -> dt.date:
    """The day, where it can be reckoned with: there are a day before and one after it in every zone. Raises
    ValidationError, which says what to choose."""
    if not 1990 <= day.year <= 2099:
        raise ValidationError("Choose a day between 1990 and 2099.")
    return day


def sentence(*, field: forms.Field, label: str, code: str, params: Params) -> str | None:
    """What to say where Django finds `code` at a field, with Django's `params`; None where it is not a code of its
    own. `label` is put in as it is."""
    found = _SENTENCES.get(code)
    return None if found is None else found(field, label, params)


def _required(field: forms.Field, label: str, params: Params) -> str:
    if isinstance(field, forms.FileField):
        return f"Choose a file for {label}."
    if isinstance(field, forms.BooleanField):
        return f"Tick {label}."
    return f"Choose {label}." if isinstance(field, forms.ChoiceField) else f"Fill in {label}."


def _invalid(field: forms.Field, label: str, params: Params) -> str:
    if isinstance(field, forms.FileField):
        return f"Choose the file for {label} again: it did not arrive."
    if isinstance(field, forms.ChoiceField | forms.BooleanField):
        return _not_offered(field, label, params)
    takes = next((words for kind, words in _TAKES if isinstance(field, kind)), "")
    return f"Write {label} as {takes}." if takes else f"Write {label} another way: it cannot be read as it is."


def _not_offered(field: forms.Field, label: str, params: Params) -> str:
    return f"Choose {label} from what is offered: what was sent is not among it."


def _too_long(field: forms.Field, label: str, params: Params) -> str:
    length, most = (params["length"], params["max"]) if "max" in params else (params["show_value"], _limit(params))
    what = f"the name of the file for {label}" if isinstance(field, forms.FileField) else label
    return f"Shorten {what}: it has {length:,} characters, and {most:,} is the most."


def _too_short(field: forms.Field, label: str, params: Params) -> str:
    return f"Write more in {label}: it has {params['show_value']:,} characters, and {_limit(params):,} is the least."


def _limit(params: Params) -> Any:
    limit = params["limit_value"]
    return limit() if callable(limit) else limit


def _figure(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _extension(field: forms.Field, label: str, params: Params) -> str:
    return f"Choose another file for {label}: its name has to end in one of {params['allowed_extensions']}."


def _clock_change(field: forms.Field, label: str, params: Params) -> str:
    zone = params["current_timezone"]
    return f"Choose another hour for {label}: clocks in {zone} change then, so that one is twice there or not at all."


_Sentence = Callable[[forms.Field, str, Params], str]
_SENTENCES: dict[str, _Sentence] = {
    "required": _required,
    "invalid": _invalid,
    "invalid_choice": _not_offered,
    "invalid_list": _not_offered,
    "invalid_pk_value": _not_offered,
    "max_length": _too_long,
    "min_length": _too_short,
    "max_value": lambda field, label, params: f"Lower {label}: {_figure(_limit(params))} is the most.",
    "min_value": lambda field, label, params: f"Raise {label}: {_figure(_limit(params))} is the least.",
    "step_size": lambda field, label, params: f"Write {label} in steps of {_figure(_limit(params))}.",
    "max_digits": lambda field, label, params: f"Write {label} with at most {params['max']} digits.",
    "max_decimal_places": lambda field, label, params: f"Write {label} with at most {params['max']} decimal places.",
    "max_whole_digits": lambda field, label, params: (
        f"Write {label} with at most {params['max']} digits before the point."
    ),
    "overflow": lambda field, label, params: f"Shorten {label}: no time that long can be kept.",
    "ambiguous_timezone": _clock_change,
    "incomplete": lambda field, label, params: f"Fill in every part of {label}.",
    "invalid_date": lambda field, label, params: f"Write the day of {label} as a date, such as 2026-11-30.",
    "invalid_time": lambda field, label, params: f"Write the hour of {label} as a time, such as 14:00.",
    "null_characters_not_allowed": lambda field, label, params: (
        f"Write {label} anew: it holds a character that no text can keep."
    ),
    "missing": lambda field, label, params: f"Choose a file for {label}: none arrived.",
    "empty": lambda field, label, params: f"Choose another file for {label}: this one is empty.",
    "contradiction": lambda field, label, params: f"Choose a file for {label}, or tick that there is none: not both.",
    "invalid_image": lambda field, label, params: f"Choose another file for {label}: this one is no picture.",
    "invalid_extension": _extension,
}
