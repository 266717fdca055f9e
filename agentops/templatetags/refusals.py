"""What somebody was told whose answer was refused. Load with `{% load refusals %}`."""

from django import template

from approvals import words
from approvals.models import Refusal

register = template.Library()


@register.filter
def told(refusal: Refusal) -> str:
    """The sentence, without what became of the answer."""
    return words.sentence(code=refusal.code, detail=refusal.detail, answered=False)
