"""Every form says what is wrong in words that name the field and the remedy, never in Django's own sentences.

The forms are found in the code, and each is tried with all that a browser or anybody else may send.
"""

import ast
import datetime as dt
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.core import validators
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.forms.models import ModelChoiceField, ModelMultipleChoiceField
from django.urls import get_resolver
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.functional import Promise

from runs.forms import Form, PlainWords, sentence
from tests.pages.world import person

REPO = Path(__file__).resolve().parents[2]
NOW = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)
# what a form is made with beside what was typed, by the name of the parameter
GIVEN: dict[str, Any] = {
    "currency": "USD",
    "process": "7",
    "now": NOW,
    "header": ["Reference", "Amount", "Date"],
    "remembered": None,
    "zone": "UTC",
    "row": {},
    "prefix": "part",
    "groups": ["Managers"],
    "tools": ["billing.create_credit"],
    "modes": [],
}
TYPED = ["", " ", "no such thing", "-7", "9" * 5000, "x" * 5001, "a\x00b", "2026-13-45", "[]", "NaN", "1e400", "\ud800"]
STOCK = ("This field is required", "Enter a ", "Select a valid choice", "Ensure this value", "Ensure that there")


def form_classes() -> list[type[forms.BaseForm]]:
    """All classes of the product that are forms, whatever they are made from."""
    found = {}
    for app in ("agentops", "reconciliation", "approvals", "runs"):
        for path in sorted((REPO / app).rglob("*.py")):
            text = path.read_text()
            if "form" not in text.lower() or "__main__" in path.name or "/sandbox/" in str(path):
                continue
            names = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
            named = [name for name in names if re.search(rf"class {name}\(.*(Form|Words)\b", text)]
            if named or re.search(r"import forms|forms import", text):
                module = importlib.import_module(".".join(path.relative_to(REPO).with_suffix("").parts))
                for value in vars(module).values():
                    if inspect.isclass(value) and issubclass(value, forms.BaseForm):
                        found[f"{value.__module__}.{value.__qualname__}"] = value
    ours = {key: one for key, one in found.items() if not key.startswith(("django.", "allauth."))}
    return [ours[key] for key in sorted(ours) if ours[key] is not Form]


FORMS = form_classes()
OWN = [one for one in FORMS if one.__module__ != "agentops.account_forms"]


def name_of(form: type) -> str:
    return f"{form.__module__}.{form.__qualname__}"


def made(form: type[forms.BaseForm], user: Any) -> forms.BaseForm:
    given = {**GIVEN, "user": user}
    takes = inspect.signature(form.__init__).parameters.values()
    needed = [one.name for one in takes if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    assert set(needed) <= set(given), f"{name_of(form)} is made with {needed}: say in GIVEN what to give it here"
    return form(**{name: given[name] for name in needed})


def told(form: type[forms.BaseForm], user: Any, typed: Any, *, all_required: bool = False) -> dict[str, list[str]]:
    """What this form says at each field where all of them hold `typed`."""
    one = made(form, user)
    if all_required:
        for field in one.fields.values():
            field.required = True
    one.is_bound = True
    one.data = MultiValueDict({one.add_prefix(name): [typed] for name in one.fields})
    one.files = MultiValueDict({one.add_prefix(name): [SimpleUploadedFile("f" * 300, b"")] for name in one.fields})
    one.full_clean()
    return {name: [str(text) for text in texts] for name, texts in one.errors.items()}


def stock(text: str) -> bool:
    return any(words in text for words in STOCK) or any(pattern.fullmatch(text) for pattern in django_says())


def django_says() -> list[re.Pattern[str]]:
    """The sentences of all of Django's fields and validators, with anything in the place of their figures."""
    found = {str(text) for kind in field_kinds() for text in kind.default_error_messages.values()}
    for kind in vars(validators).values():
        if inspect.isclass(kind) and isinstance(getattr(kind, "message", None), Promise):
            found.add(str(kind.message) if "(" not in repr(kind.message) else "Ensure this value")
    return [re.compile(re.sub(r"%\\\(\w+\\\)[sd]", ".*", re.escape(text)), re.DOTALL) for text in found]


def field_kinds(kind: type[forms.Field] = forms.Field) -> Iterator[type[forms.Field]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("django.forms."):
            yield below
        yield from field_kinds(below)


def test_the_forms_are_found() -> None:
    names = {one.__name__ for one in FORMS}
    assert {"VerdictForm", "FreezeForm", "StepForm", "FaultForm", "LoginForm"} <= names and len(OWN) >= 23
    assert {name_of(one) for one in below(forms.BaseForm)} <= {name_of(one) for one in (*FORMS, Form)}


def below(form: type) -> Iterator[type]:
    for one in form.__subclasses__():
        if one.__module__.split(".")[0] in ("agentops", "reconciliation", "approvals", "runs"):
            yield one
        yield from below(one)


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_every_form_has_our_words(form: type) -> None:
    kind = PlainWords if form.__module__ == "agentops.account_forms" else Form
    assert issubclass(form, kind), f"{name_of(form)} has to be a runs.forms.Form"


def test_no_form_says_a_sentence_of_djangos(db: str) -> None:
    user = person("Ana Ruiz", "admin")
    for form in OWN:
        said = 0
        for typed in TYPED:
            for all_required in (False, True):
                for name, texts in told(form, user, typed, all_required=all_required).items():
                    said += len(texts)
                    assert not [text for text in texts if stock(text)], (name_of(form), name, typed[:20], texts)
        assert said, f"{name_of(form)} minds nothing, so nothing of it was tried here"


def test_our_own_words_name_the_field(db: str) -> None:
    """But where the form has words of its own for that field."""
    user = person("Ana Ruiz", "admin")
    named = 0
    for form, typed in itertools.product(OWN, ("", "x" * 5001)):
        labels = {name: f"“{made(form, user)[name].label}”" for name in made(form, user).fields}
        for name, texts in told(form, user, typed, all_required=True).items():
            ours = [text for text in texts if re.match(r"(Fill in|Choose|Write|Shorten|Raise) “", text)]
            assert all(labels[name] in text for text in ours), (name_of(form), texts)
            named += len(ours)
    assert named > 60


ARGUMENTS: dict[type, dict[str, Any]] = {
    forms.ChoiceField: {"choices": [("a", "A")]},
    forms.RegexField: {"regex": "^a$"},
    forms.ComboField: {"fields": [forms.CharField(), forms.EmailField()]},
    forms.SplitDateTimeField: {},
    forms.MultiValueField: {"fields": [forms.CharField(), forms.CharField()]},
    forms.FilePathField: {"path": str(REPO / "docs")},
    forms.URLField: {"assume_scheme": "https"},
}


@pytest.mark.parametrize("kind", sorted(set(field_kinds()), key=name_of), ids=name_of)
def test_every_sentence_of_every_kind_of_field_is_ours(kind: type[forms.Field]) -> None:
    """Also of those that no form has yet."""
    if kind in (ModelChoiceField, ModelMultipleChoiceField) or "Inline" in kind.__name__:
        field: forms.Field = forms.MultipleChoiceField()
    else:
        given = next((ARGUMENTS[one] for one in kind.__mro__ if one in ARGUMENTS), {})
        field = kind(**given)
    params = {"max": 5, "length": 9, "value": "x", "pk": "x"}
    assert field.error_messages.keys() >= {"required"}
    for code in kind.default_error_messages | forms.Field.default_error_messages:
        said = sentence(field=field, label="“Name”", code=code, params=params)
        assert said is not None and "“Name”" in said and not stock(said), code


LIMITS: list[tuple[forms.Field, str, str]] = [
    (forms.CharField(max_length=2000), "x" * 2312, "Shorten “Why”: it has 2,312 characters, and 2,000 is the most."),
    (forms.CharField(min_length=5), "ab", "Write more in “Why”: it has 2 characters, and 5 is the least."),
    (forms.IntegerField(max_value=1000), "1001", "Lower “Why”: 1,000 is the most."),
    (forms.IntegerField(min_value=lambda: 1), "0", "Raise “Why”: 1 is the least."),
    (forms.FloatField(max_value=0.5), "0.6", "Lower “Why”: 0.5 is the most."),
    (forms.IntegerField(step_size=5), "7", "Write “Why” in steps of 5."),
    (forms.DecimalField(max_digits=4, decimal_places=2), "0.123", "Write “Why” with at most 2 decimal places."),
    (forms.DecimalField(max_digits=4), "12345", "Write “Why” with at most 4 digits."),
    (forms.DecimalField(max_digits=4, decimal_places=2), "123", "Write “Why” with at most 2 digits before the point."),
    (forms.CharField(), "a\x00", "Write “Why” anew: it holds a character that no text can keep."),
    (forms.IntegerField(), "many", "Write “Why” as a whole number, such as 3."),
    (forms.FloatField(), "NaN", "Write “Why” as a number, such as 2.5."),
    (forms.DateField(), "soon", "Write “Why” as a date, such as 2026-11-30."),
    (forms.DateTimeField(), "soon", "Write “Why” as a date and a time, such as 2026-11-30 14:00."),
    (forms.TimeField(), "25:00", "Write “Why” as a time, such as 14:00."),
    (forms.DurationField(), "soon", "Write “Why” as a length of time, such as 01:30:00."),
    (forms.DurationField(), "9" * 30, "Shorten “Why”: no time that long can be kept."),
    (forms.EmailField(), "me", "Write “Why” as a mail address, such as name@example.com."),
    (forms.URLField(assume_scheme="https"), "//", "Write “Why” as a web address, such as https://example.com."),
    (forms.RegexField("^a$"), "b", "Write “Why” another way: it cannot be read as it is."),
    (forms.ChoiceField(choices=[]), "b", "Choose “Why” from what is offered: what was sent is not among it."),
    (forms.ChoiceField(choices=[]), "", "Choose “Why”."),
    (forms.BooleanField(), "", "Tick “Why”."),
    (forms.CharField(), " ", "Fill in “Why”."),
    (forms.CharField(error_messages={"required": "Say why."}), "", "Say why."),
    (forms.SplitDateTimeField(require_all_fields=False), "", "Fill in “Why”."),
]


@pytest.mark.parametrize(("field", "typed", "said"), LIMITS)
def test_what_is_said(field: forms.Field, typed: str, said: str) -> None:
    form = type("OneForm", (Form,), {"why": field})({"why": typed})
    assert form.errors["why"][0] == said


@pytest.mark.parametrize("typed", ["2027-03-28 02:30", "2026-10-25T02:30"])
def test_an_hour_that_is_twice_there_or_not_at_all(typed: str) -> None:
    form = type("OneForm", (Form,), {"why": forms.DateTimeField()})({"why": typed})
    with timezone.override("Europe/Berlin"):
        assert form.errors["why"] == [
            "Choose another hour for “Why”: clocks in Europe/Berlin change then, so that one is twice there or not at "
            "all."
        ]


def test_every_code_that_djangos_fields_name_anywhere_has_our_words() -> None:
    """Also those that stand in no list of a field's messages, such as that of a change of the clocks."""
    sources = [Path(inspect.getfile(one)) for one in (forms.fields, forms.utils, validators)]
    found = {code for one in sources for code in re.findall(r"code\s*=\s*\"(\w+)\"", one.read_text())}
    found.remove("limit_value")  # of the class that those with limits are made from
    assert {"ambiguous_timezone", "max_digits", "required", "step_size"} <= found
    params = {"max": 5, "length": 9, "show_value": 9, "limit_value": 5, "allowed_extensions": "csv"}
    for code in found:
        said = sentence(
            field=forms.CharField(), label="“Name”", code=code, params={**params, "current_timezone": "UTC"}
        )
        assert said is not None and "“Name”" in said, code


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (None, "Choose a file for “Book”."),
        (SimpleUploadedFile("a.txt", b""), "Choose another file for “Book”: this one is empty."),
        (
            SimpleUploadedFile("a" * 60, b"x"),
            "Shorten the name of the file for “Book”: it has 60 characters",
        ),
        (SimpleUploadedFile("a.txt", b"x"), "Choose another file for “Book”: its name has to end in one of csv, tsv."),
    ],
)
def test_what_is_said_of_a_file(file: Any, said: str) -> None:
    class BookForm(Form):
        book = forms.FileField(max_length=50, validators=[validators.FileExtensionValidator(["csv", "tsv"])])

    assert BookForm({}, {"book": file} if file else {}).errors["book"][0].startswith(said)


def test_what_a_form_says_itself_is_left_as_it_is() -> None:
    class OwnForm(Form):
        why = forms.CharField(required=False)

        def clean_why(self) -> str:
            raise ValidationError("Say it %(how)s.", code="invalid", params={"how": "kindly"})

        def clean(self) -> None:
            self.add_error("why", "And shorter.")
            raise ValidationError("Not like that.")

    form = OwnForm({})
    assert form.errors == {"why": ["Say it kindly.", "And shorter."], "__all__": ["Not like that."]}


def test_a_hostile_label_is_shown_as_text() -> None:
    class OddForm(Form):
        why = forms.CharField(label="<b>%(x)s {0}</b>", max_length=1)

    assert OddForm({"why": "ab"}).errors["why"] == [
        "Shorten “<b>%(x)s {0}</b>”: it has 2 characters, and 1 is the most."
    ]
    assert "<b>" not in str(OddForm({}).errors)


def test_the_pages_of_an_account_take_these_forms() -> None:
    """What an administrator does is closed, and nothing is signed in by a code sent by mail."""
    closed = {"SignupView", "EmailView", "PasswordResetView", "PasswordResetFromKeyView"}
    taken = 0
    for view in account_views(get_resolver().url_patterns):
        if hasattr(view, "get_form_class") and "code" not in view.__name__.lower() and view.__name__ not in closed:
            form = view().get_form_class()
            taken += 1
            assert issubclass(form, PlainWords) or not form.base_fields, view.__name__
    assert taken > 10


def account_views(patterns: Any) -> Iterator[type]:
    for one in patterns:
        if hasattr(one, "url_patterns"):
            yield from account_views(one.url_patterns)
        elif getattr(one.callback, "view_class", None) is not None:
            yield one.callback.view_class


def test_signing_in_with_nothing(client: Any, db: None) -> None:
    page = client.post("/accounts/login/", {"login": " ", "password": ""}).content.decode()
    assert "Fill in “User name”." in page and "Fill in “Password”." in page and "This field" not in page
