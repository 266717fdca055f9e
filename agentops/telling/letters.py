"""What a mail says: subject, text and HTML of one notice, or of a digest of several. No mail acts; it links to pages.

The amount comes from the proposal itself and stands first, in the subject too. Everything that was recorded is shown
behind a bar (text) or in a cell of its own (HTML), with nothing hidden in it, so no value can pass for our words.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse

from agentops import asked
from agentops.telling import wording
from approvals import heard, seating, words
from approvals.announced import amount_of, page_url
from approvals.models import ApprovalRequest, Notice
from approvals.services import outgoing
from runs.texts import one_line, quoted

CHAIN = 100  # earlier versions of a request that are followed back
OUTCOMES = {
    "request.approved": ("Approved", "It is waiting to run; its run shows what became of it."),
    "request.rejected": ("Rejected", "What was asked will not be done."),
    "request.expired": ("Expired", "Time ran out, so nothing was sent. The run's page says what follows."),
    "request.withdrawn": ("Withdrawn", "It takes no answers any more."),
    "request.sent_back": ("Sent back", "Nothing was sent. The run's page says what follows."),
    "request.stale": ("Out of date", "The facts changed after it was approved, so it was not used."),
    "request.revoked": ("No longer allowed", "The approval no longer stands, so it was not used."),
}
_COUNTED = "They had approved before; the system counted that when all of them were entitled to it."
_MARKED = "Lines behind a bar are recorded values, word for word. Whatever they say, they are data."


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    to: str
    subject: str
    text: str
    html: str
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One request in a mail. `rows` are {label, value}; `lines` sentences of ours, `said` what a person wrote."""

    title: str
    amount: str
    ask: str
    lines: tuple[str, ...]
    said: str
    said_label: str
    rows: tuple[dict[str, str], ...]
    url: str
    link: str


def host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or "localhost"


def about(request: ApprovalRequest) -> str:
    """Amount and customer for a subject line: `$1,200.00 USD for “Acme Corp”`. One line, whatever the names hold."""
    money = amount_of(request)
    customer = quoted(text=request.run.customer or request.run.subject, limit=80)
    return f"{money} for {customer}" if money is not None else f"{one_line(text=request.ask, limit=120)} ({customer})"


def compose(*, notices: Sequence[Notice]) -> Letter:
    """The mail for these notices, which are one person's: one of them by itself, several as a digest."""
    items = [_item(notice) for notice in notices]
    first = notices[0]
    if len(notices) == 1:
        subject, heading = f"{items[0].title}: {about(first.request)}", items[0].title
    else:
        asked = sum(notice.kind == Notice.Kind.ASKED for notice in notices)
        written = sum(notice.kind == Notice.Kind.TALK for notice in notices)
        told = len(notices) - asked - written
        parts = [f"{asked} waiting for you"] * bool(asked) + [f"{told} decided or closed"] * bool(told)
        parts += [f"{written} written"] * bool(written)
        subject = heading = f"Approvals: {', '.join(parts)}"
    why = "You get this mail because you can answer such requests, started what they are about, or were asked."
    preferences = settings.PUBLIC_URL + reverse("mail_preferences")
    context = {"heading": heading, "items": items, "why": why, "preferences": preferences, "single": len(items) == 1}
    return Letter(
        to=first.recipient.email.strip(),
        subject=one_line(text=subject, limit=400),
        text=plain_text(heading=heading, items=items, why=why, preferences=preferences),
        html=render_to_string("mail/letter.html", context),
        headers=_headers(notices),
    )


def _headers(notices: Sequence[Notice]) -> dict[str, str]:
    """Who reads threads finds a request's mails under one root, its later versions included; a repeated mail has the
    first one's Message-ID."""
    headers = {
        "Message-ID": f"<{notices[0].pk}@{host()}>",
        "List-Id": f"agentops approvals <approvals.{settings.INSTALLATION}.{host()}>",
        "List-Unsubscribe": f"<{settings.PUBLIC_URL}{reverse('mail_preferences')}>",
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
    }
    if len(notices) == 1:
        thread = f"<request.{_first_version(notices[0].request).pk}@{host()}>"
        headers |= {"In-Reply-To": thread, "References": thread}
    return headers


def _first_version(request: ApprovalRequest) -> ApprovalRequest:
    for _ in range(CHAIN):
        if request.supersedes is None:
            break
        request = request.supersedes
    return request


def _item(notice: Notice) -> Item:
    request = notice.request
    money = amount_of(request)
    title, lines, said = _TELL[Notice.Kind(notice.kind)](notice)
    return Item(
        title=title,
        amount="" if money is None else str(money),
        ask=wording.shown(key="ask", value=request.ask),
        lines=lines,
        said=wording.shown(key="comment", value=said) if said else "",
        said_label="Written" if notice.kind == Notice.Kind.TALK else "Reason given",
        rows=tuple(
            {
                "label": wording.shown(key="label", value=str(row.get("label", "")))[:200],
                "value": wording.shown(key=str(row.get("key", "")), value=str(row.get("value", ""))),
            }
            for row in request.page
        ),
        url=page_url(request),
        link="See what became of it" if notice.kind == Notice.Kind.OUTCOME else "Open the decision page",
    )


def _asked(notice: Notice) -> tuple[str, tuple[str, ...], str]:
    request = notice.request
    needed = "one answer decides" if request.quorum == 1 else f"{request.quorum} people have to approve"
    needed = asked.progress(request, yes=heard.yes(requests=[request])) or needed
    until: dt.datetime = outgoing.answer_by(notice=notice)
    lines = [f"Asked of {asked.asked_words(request)}; {needed}. Answer by {words.when(iso=until.isoformat())}."]
    away = asked.acts_for(seating.of(request=request, user=notice.recipient))
    if away is not None:
        until_then = words.when(iso=away.until.isoformat())
        lines.insert(
            0, f"You stand in for {quoted(text=away.name, limit=120)}, who is away until {until_then}. You count once."
        )
    lines.append(f"Started by {quoted(text=request.run.initiator.label, limit=120)}.")
    if request.changes:
        lines.append(f"It was asked before; {len(request.changes)} of the bound values changed since.")
    again = notice.event.kind == "request.reminded"
    return "Still waiting for you" if again else "Waiting for you", tuple(lines), ""


def _outcome(notice: Notice) -> tuple[str, tuple[str, ...], str]:
    title, meaning = OUTCOMES[notice.event.kind]
    lines, said = [meaning], str(notice.event.data.get("why") or "")
    if notice.event.kind in ("request.approved", "request.rejected") and not said:
        if "vote" not in notice.event.data:  # nobody clicked
            lines.insert(0, _COUNTED)
        people = ", ".join(quoted(text=vote.whose, limit=240) for vote in heard.deciders(request=notice.request))
        lines.insert(0, f"{title} by {people} on {words.when(iso=notice.event.at.isoformat())}.")
        said = str(notice.event.data.get("comment") or "")
    else:
        lines.insert(0, f"{title} on {words.when(iso=notice.event.at.isoformat())}.")
    return title, tuple(lines), said


_WRITTEN = {
    "request.commented": ("New comment", "commented on this"),
    "request.question": ("A question for you", "asked for information. The time to answer the request runs on"),
    "request.answered": ("Answered", "answered a question on this"),
}


def _talk(notice: Notice) -> tuple[str, tuple[str, ...], str]:
    title, did = _WRITTEN[notice.event.kind]
    who = quoted(text=notice.event.actor.label, limit=120)
    line = f"{who} {did}, on {words.when(iso=notice.event.at.isoformat())}."
    return title, (line, "Answer on the page, not by mail."), str(notice.event.data.get("comment") or "")


_TELL = {Notice.Kind.ASKED: _asked, Notice.Kind.OUTCOME: _outcome, Notice.Kind.TALK: _talk}


def plain_text(*, heading: str, items: Sequence[Item], why: str, preferences: str) -> str:
    """The mail for who reads no HTML: the same, in the same order."""
    parts: list[str] = [heading] if len(items) > 1 else []
    for item in items:
        parts.append(f"{item.title}: {item.amount}" if item.amount else item.title)
        parts.append("\n".join(wording.barred(text=item.ask)))
        parts.append("\n".join(item.lines))
        parts.append(f"{item.link}:\n{item.url}")
        if item.said:
            parts.append(wording.block(label=item.said_label, value=item.said))
        parts.append(_MARKED)
        parts += [wording.block(label=row["label"], value=row["value"]) for row in item.rows]
        parts.append("-" * 40)
    parts.append(f"{why} The link opens a page and changes nothing by itself.")
    parts.append(f"How you are told: {preferences}")
    return "\n\n".join(parts) + "\n"
