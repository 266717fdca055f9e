"""What the pages about runs and operations need beside the common parts. Load with `{% load record %}`."""

import json
from typing import Any

from django import template

from runs import times, words

register = template.Library()


@register.filter
def compact_json(value: Any) -> str:
    """On one line, keys in order; escaped by the template like any other text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


@register.filter
def pretty_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2, default=str)


@register.filter
def tool_words(name: str) -> str:
    return words.tool(name)


@register.filter
def system_words(name: str) -> str:
    return words.system(name)


@register.filter
def system_title(name: str) -> str:
    return words.system_title(name)


@register.filter
def sentence_case(text: str) -> str:
    return words.sentence_case(text)


@register.filter
def spell(seconds: float) -> str:
    return times.spell(seconds=seconds)
