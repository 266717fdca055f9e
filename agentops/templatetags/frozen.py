"""Which clocks stand still. Load with `{% load frozen %}`."""

from collections.abc import Iterable

from django import template

from approvals import freezes
from approvals.models import ApprovalRequest, Freeze

register = template.Library()


@register.filter
def stopped_by(request: ApprovalRequest, in_force: Iterable[Freeze]) -> bool:
    """Whether the clock of a request is stopped: `{% due ask.respond_by ask|stopped_by:freezes %}`."""
    return freezes.stops(request=request, in_force=in_force)


@register.filter
def running(requests: Iterable[ApprovalRequest], in_force: Iterable[Freeze]) -> ApprovalRequest | None:
    """The first of them whose clock is not stopped."""
    return next((one for one in requests if not freezes.stops(request=one, in_force=in_force)), None)
