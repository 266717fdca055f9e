"""Mail about cases, to those who may settle them: new ones, and those that have been open for a day."""

import logging
import smtplib

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse

from agentops.telling import wording
from agentops.telling.letters import Item, Letter, host, plain_text
from agentops.telling.mailer import AddressRefused, send
from approvals.services.preferences import of
from reconciliation.models import CaseNotice
from reconciliation.models.case import SETTLE, CaseState
from reconciliation.services import telling
from reconciliation.services.telling import MOST_TRIES
from runs import words
from runs.money import Money
from runs.texts import one_line, quoted

log = logging.getLogger(__name__)
R = CaseNotice.Result
_WHY = "You get this mail because you may settle such cases."


def tell_next(*, limit: int = 100) -> int:
    """Spread what is new, and send one mail that is due; returns how much was done."""
    done = telling.spread(limit=limit)
    taken = telling.take()
    wanted = [one for one in taken if not _ended_unsent(one)]
    if not wanted:
        return done + len(taken)
    try:
        send(compose(notices=wanted))
    except (AddressRefused, smtplib.SMTPException, OSError) as problem:
        log.warning("mail about cases was not sent: %s", problem)
        telling.end(notices=[one for one in wanted if one.tries >= MOST_TRIES], result=R.GIVEN_UP)
    else:
        telling.end(notices=wanted, result=R.SENT)
    return done + len(taken)


def _ended_unsent(one: CaseNotice) -> bool:
    """Whether it turned out that this need not be sent; then that is written down."""
    user = one.recipient
    if one.case.state == CaseState.RESOLVED or not (user.is_active and user.has_perm(SETTLE)):
        telling.end(notices=[one], result=R.NOT_NEEDED)
    elif not user.email.strip():
        telling.end(notices=[one], result=R.NO_ADDRESS)
    elif of(user=user).mail == "none":
        telling.end(notices=[one], result=R.NOT_WANTED)
    else:
        return False
    return True


def compose(*, notices: list[CaseNotice]) -> Letter:
    """One mail for these notices, which are one person's; the amount stands first, in the subject too."""
    items = [_item(one) for one in notices]
    first = items[0]
    subject = f"{first.title}: {first.amount or 'no amount'}, {first.ask}"
    if len(items) > 1:
        ageing = sum(one.stage == CaseNotice.Stage.AGEING for one in notices)
        parts = [f"{len(items) - ageing} new"] * (ageing < len(items)) + [f"{ageing} still open"] * bool(ageing)
        subject = f"Cases to settle: {', '.join(parts)}"
    preferences = settings.PUBLIC_URL + reverse("mail_preferences")
    single = len(items) == 1
    context = {"heading": subject, "items": items, "why": _WHY, "preferences": preferences, "single": single}
    return Letter(
        to=notices[0].recipient.email.strip(),
        subject=one_line(text=subject, limit=400),
        text=plain_text(heading=subject, items=items, why=_WHY, preferences=preferences),
        html=render_to_string("mail/letter.html", context),
        headers={
            "Message-ID": f"<case-notice.{notices[0].pk}@{host()}>",
            "List-Id": f"agentops cases <cases.{settings.INSTALLATION}.{host()}>",
            "List-Unsubscribe": f"<{preferences}>",
            "Auto-Submitted": "auto-generated",
        },
    )


def _item(one: CaseNotice) -> Item:
    case, operation = one.case, one.case.operation
    title = f"Case {case.label}" + (" is still open" if one.stage == CaseNotice.Stage.AGEING else "")
    whom = quoted(text=operation.run.customer or operation.run.subject, limit=80)
    opened = f"{case.get_kind_display()}. Opened on {case.opened_at:%Y-%m-%d at %H:%M} UTC; "
    return Item(
        title=title,
        amount=str(Money(operation.amount_minor, operation.currency)) if operation.amount_minor else "",
        ask=wording.shown(key="ask", value=f"{words.tool(operation.tool)} for {whom}"),
        lines=(opened + (f"{case.claimed_by} has it." if case.claimed_by else "nobody has it."),),
        said="",
        said_label="",
        rows=({"label": "Why a person is asked", "value": wording.shown(key="why", value=case.why)},),
        url=settings.PUBLIC_URL + reverse("case", args=[case.pk]),
        link="Open the case",
    )
