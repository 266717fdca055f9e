"""What an event carries, drawn as pairs of label and value. In code: a page of the record draws thousands of them."""

from collections.abc import Iterable

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agentops.pages.detail import Fact, Value
from runs.templatetags import parts

register = template.Library()


@register.simple_tag(takes_context=True)
def event_facts(context: Context, facts: Iterable[Fact]) -> SafeString:
    """The pairs of a `dl` of the class `pairs`."""
    return format_html_join("", "<div{}><dt>{}</dt><dd>{}</dd></div>", (_pair(context, one) for one in facts))


def _pair(context: Context, fact: Fact) -> tuple[SafeString, SafeString | str, SafeString]:
    label = fact.label if fact.known else format_html("<code>{}</code>", fact.label)
    return SafeString(' class="wide"' if fact.wide else ""), label, _drawn(context, fact.value)


def _drawn(context: Context, value: Value) -> SafeString:
    if value.kind == "none":
        return format_html('<span class="quiet">{}</span>', value.text)
    if value.kind == "time":
        return parts.when(context, value.at, "clock")
    if value.kind == "money":
        return parts.money(value.minor, value.currency)
    if value.kind == "list":
        items = format_html_join("", "<li>{}</li>", ((_drawn(context, one),) for one in value.items))
        return format_html("<ul>{}</ul>", items)
    if value.kind == "facts":
        return format_html('<dl class="inner">{}</dl>', event_facts(context, value.facts))
    face = "<code>{}</code>" if value.kind == "code" else '<span class="full-text">{}</span>'
    shown = format_html(face, value.text)
    if value.to:
        shown = format_html('<a href="{}">{}</a>', reverse(value.to, args=[value.key]), shown)
    return format_html('{} <code class="quiet">{}</code>', shown, value.note) if value.note else shown
