"""What the pages before a login, and those that prove it anew, need. Load with `{% load entrance %}`."""

from allauth.account.utils import get_next_redirect_url
from django import template
from django.template import Context

register = template.Library()


@register.simple_tag(takes_context=True)
def way_back(context: Context) -> str:
    """Where the page leads when it is done, if that is an address of ours."""
    return get_next_redirect_url(context["request"]) or ""
