"""Standing approvals in words, and the chip of what one comes to. Load with `{% load standing %}`."""

from django import template
from django.utils.safestring import SafeString

from agentops import asked
from approvals import standing_words
from approvals.models import StandingApproval
from runs.templatetags.parts import chip

register = template.Library()
LOOKS = {
    "waiting": ("amber", "hourglass", "Not in force yet"),
    "ready": ("grey", "clock", "Not begun"),
    "in_force": ("green", "check", "In force"),
    "used_up": ("amber", "ban", "Used up"),
    "over": ("grey", "clock", "Over"),
    "declined": ("grey", "x", "Declined"),
    "withdrawn": ("grey", "x", "Withdrawn"),
    "revoked": ("red", "ban", "Revoked"),
}


@register.simple_tag
def standing_chip(look: str) -> SafeString:
    """The chip of a `standing_figures.Left.look`."""
    return chip(*LOOKS[look])


@register.filter
def group_words(name: str) -> str:
    """A group, or a stage that is called after one, in the product's words."""
    return asked.group_words(name)


@register.filter
def standing_whom(one: StandingApproval) -> str:
    return standing_words.whom(standing=one)


@register.filter
def standing_each(one: StandingApproval) -> str:
    return standing_words.each(standing=one)
