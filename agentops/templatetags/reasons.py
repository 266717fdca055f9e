"""Why a run needs a person, in the product's own words. Load with `{% load reasons %}`."""

from django import template

from agentops import reasons

register = template.Library()


@register.filter
def reason_words(code: str) -> str:
    """The words for a run's `person_code`."""
    return reasons.words(code)
