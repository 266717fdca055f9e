"""The one place where text from outside becomes part of a page: every template's output, fragments for the web socket
included. Marks that reorder, hide or split text are written out there, so no template can forget a field."""

from typing import Any

from django.http import HttpRequest
from django.template.backends.django import DjangoTemplates, Template
from django.utils.safestring import SafeString

from runs.texts import visible


class Shown(Template):
    """A template whose output has nothing unseen in it. What is stored and bound is untouched."""

    def render(self, context: dict[str, Any] | None = None, request: HttpRequest | None = None) -> SafeString:
        return SafeString(visible(text=super().render(context, request)))


class ShownTemplates(DjangoTemplates):
    """Django's own templates, each of them a `Shown`."""

    def from_string(self, template_code: str) -> Shown:
        return Shown(super().from_string(template_code).template, self)

    def get_template(self, template_name: str) -> Shown:
        return Shown(super().get_template(template_name).template, self)
