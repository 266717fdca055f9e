"""Everything the decision page shows about one request, read and put into words. No writes."""

import json
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Prefetch, prefetch_related_objects
from django.urls import reverse

from agentops import asked
from agentops.pages import chain, exposure, stages
from agentops.pages.became import Outcome, outcome
from approvals import confirming, freezes, heard, objections, seating, talk, words
from approvals.binding import differences
from approvals.models import ApprovalRequest, Freeze, Stage, Viewing, Vote
from approvals.models.request import RequestState
from approvals.objections import Objection
from approvals.seating import Seating
from reconciliation.models import Operation
from runs import clock, times
from runs import words as runs_words
from runs.models import Evidence, Principal
from runs.money import Money
from runs.tools.base import Contract, Repeat
from runs.tools.registry import UnknownTool, contract

# labels of bound rows that have a card of their own at the top, in this order
_CARDS = ("account", "invoice")
_RELATED = (
    "run__agent",
    "run__initiator",
    "run__cancelled_by",
    "proposal__proposer",
    "proposal__model_call",
    "policy_version__policy",
    "supersedes",
    "closed_by",
    "decision",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the reader may do with the request now, and what has become of it."""

    objection: Objection | None
    outcome: Outcome
    operation: Operation | None
    questions: int  # that wait for an answer
    held: Freeze | None  # holds an answer that the reader could give
    over: bool  # the run is: nothing follows any more

    @property
    def version(self) -> str:
        """Changes whenever the page would say something else about the request's state."""
        code = self.objection.code if self.objection else "open"
        held = f".{self.held.pk}" if self.held else ""
        over = ".over" if self.over else ""
        return f"{code}.{self.outcome.look.word}.{self.questions}{held}{over}".lower().replace(" ", "_")


def load(*, request_id: Any) -> ApprovalRequest | None:
    return ApprovalRequest.objects.select_related(*_RELATED).filter(pk=request_id).first()


def seated(*, user: User, request: ApprovalRequest) -> Seating:
    """How the reader finds the request; its stages and votes stay with it, for all that is said of them."""
    stages_read = Stage.objects.select_related("handed_user", "handed_group", "person", "added_by").order_by("position")
    votes_read = Vote.objects.select_related("principal", "instead_of").order_by("at", "id")
    prefetch_related_objects([request], Prefetch("stages", stages_read), Prefetch("votes", votes_read))
    return seating.of(
        request=request, user=user, stages=list(request.stages.all()), votes=list(request.votes.all())
    )  # fmt: skip


def standing(*, user: User, request: ApprovalRequest, seen: Seating | None = None) -> Standing:
    """`seen` is how the reader finds it, where that was read."""
    operation = Operation.objects.filter(proposal_id=request.proposal_id).first()
    found = objections.first(request=request, user=user, now=clock.now(), seen=seen)
    became, questions = outcome(request=request, operation=operation), len(talk.open_questions(request=request))
    held = freezes.over(workflow=request.run.workflow, tool=request.proposal.tool) if found is None else None
    return Standing(
        objection=found, outcome=became, operation=operation, questions=questions, held=held, over=request.run.is_over
    )


def why_not(*, request: ApprovalRequest, objection: Objection | None) -> str:
    """Why the reader cannot decide, before anything was clicked."""
    if objection is None:
        return ""
    if objection.code == "no_right":
        return f"Answered by {_everybody(request)}; your account is not one of them."
    if objection.code == "superseded":
        return _replaced(request, asked_now=bool(objection.detail.get("successor")))
    return words.sentence(code=objection.code, detail=objection.detail, answered=False)


def _replaced(request: ApprovalRequest, *, asked_now: bool) -> str:
    by = request.closed_by
    person = by is not None and by.kind == Principal.Kind.PERSON
    why = f"{by} proposed another amount." if person else "Something has changed since this was asked."
    if asked_now:
        return why
    if request.run.is_over:
        return f"{why} Nobody was asked again, and the run is over; its page says what became of it."
    return f"{why} What follows is being worked out; if anything is asked, this page goes there by itself."


def _everybody(request: ApprovalRequest) -> str:
    """All whom any of its stages asks."""
    named = [asked.group_words(name) for one in asked.stages(request) for name in one.every_group]
    named += [one.name for one in asked.stages(request) if one.person_id is not None]
    return " or ".join(dict.fromkeys(named))


def answered_so(*, user: User, request: ApprovalRequest, choice: str) -> bool:
    """The reader's own word on it is already the one that they send again."""
    return Vote.objects.filter(request=request, principal__user=user, choice=choice).exists()


def comment_kept(*, user: User, request: ApprovalRequest, comment: str) -> bool:
    """The stored vote of the reader carries this comment, so it was sent."""
    kept = words.storable(text=comment)
    return Vote.objects.filter(request=request, principal__user=user, comment=kept).exists()


def amount(request: ApprovalRequest) -> Money | None:
    proposal = request.proposal
    return Money(proposal.amount_minor, proposal.currency) if proposal.amount_minor is not None else None


def title_parts(request: ApprovalRequest) -> dict[str, str]:
    """The ask around its exact amount, so that the amount can stand out; an ask without it stays whole. ``code`` is the
    currency's, empty where the amount is written with it (`KWD 425.050`)."""
    money = amount(request)
    if money is None or money.display() not in request.ask:
        return {"before": request.ask, "amount": "", "code": "", "after": ""}
    before, display, after = request.ask.partition(money.display())
    code = "" if money.currency in display else money.currency
    return {"before": before, "amount": display, "code": code, "after": after}


def changes(*, user: User, request: ApprovalRequest) -> dict[str, Any]:
    """Old and new of every bound value, against the newest earlier version the reader has opened, else the last one."""
    if not request.changes or request.supersedes is None:
        return {}
    earlier = chain.versions(request=request)[:-1]
    opened = {
        viewing.request_id: viewing.at
        for viewing in Viewing.objects.filter(request__in=[one.pk for one in earlier], principal__user=user)
    }
    seen = next((one for one in reversed(earlier) if one.pk in opened), None)
    against = seen or request.supersedes
    rows = [row for row in differences(old_rows=against.page, new_rows=request.page) if row["key"] != "identity"]
    for row in rows:
        if row["key"] == "confirm":  # a row of its own only where more than a click is taken
            row |= {name: row[name] or confirming.WORDS[confirming.CLICK] for name in ("old", "new")}
    amount_moved = any(row["key"] == "amount" for row in rows)
    return {"rows": rows, "amount_moved": amount_moved, "seen_at": opened.get(against.pk), "since": against.created_at}


def promises(request: ApprovalRequest) -> dict[str, Any]:
    """What the tool's contract promises, in words; a tool nobody knows any more is said to be one."""
    try:
        known = contract(request.proposal.tool)
    except UnknownTool:
        return {"title": request.proposal.tool, "known": False}
    return {
        "known": True,
        "title": known.title,
        "system": known.system,
        "touches": known.touches,
        "undo": known.undo,
        "precondition": known.precondition,
        "repeat": repeat_words(known),
    }


def repeat_words(known: Contract) -> str:
    """Whether it may be sent again, for people."""
    retention = times.span(seconds=known.retention.total_seconds())
    other_side = runs_words.system(known.system, begins=True)
    return {
        Repeat.BY_IDENTITY: f"Every attempt carries it. {other_side} answers a repeat within {retention} with the "
        "first result; after that we look first.",
        Repeat.LOOK_UP_FIRST: "Every attempt carries it. It is looked up first and sent again only when it is proved "
        "that nothing is there.",
        Repeat.ONCE: "It is sent once. If no certain answer comes, a person settles it.",
    }[known.repeat]


def _workings(request: ApprovalRequest) -> dict[str, Any]:
    """The system's steps beside the agent's figures, and whether they agree."""
    found = request.proposal.workings or {}
    figures = found.get("agent")
    figures = figures if isinstance(figures, dict) else {}
    steps = []
    for step in found.get("steps", []):
        agent = str(step.get("agent") or figures.get(step.get("key"), ""))
        steps.append({**step, "agent": agent, "same": agent == step.get("system") if agent else None})
    judged = [step["same"] for step in steps if step["same"] is not None]
    return {
        "steps": steps,
        "tiers": found.get("tiers", []),
        "near": found.get("near", ""),
        "agree": all(judged) if judged else None,
        "any_agent": bool(judged),
    }


def _evidence(request: ApprovalRequest) -> list[dict[str, Any]]:
    """What the proposal was made from, each piece beside its newest reading."""
    proposal = request.proposal
    newest: dict[tuple[str, str], Evidence] = {}
    for piece in Evidence.objects.filter(run=request.run).order_by("reading").defer("content"):
        newest[piece.kind, piece.locator] = piece
    now, rows = clock.now(), []
    for piece in Evidence.objects.filter(run=request.run, reading=proposal.reading).order_by("-authoritative", "kind"):
        last = newest[piece.kind, piece.locator]
        age = now - last.retrieved_at
        rows.append(
            {
                "piece": piece,
                "last": last,
                "moved": last.bound_digest != piece.bound_digest,
                "fresh": age <= settings.FACT_FRESH,
                "binds": str(piece.pk) in proposal.rests_on,
                "content": json.dumps(piece.content, indent=2, ensure_ascii=False),
            }
        )
    return sorted(rows, key=lambda row: not row["binds"])


def _page_rows(request: ApprovalRequest, facts: dict[str, Evidence]) -> dict[str, Any]:
    """The bound rows exactly as frozen (their digest is what a vote posts), and those with a card."""
    by_key = {row.get("key", ""): row for row in request.page}
    return {
        "rows": request.page,
        "lead": exposure.lead(request=request, facts=facts),
        "identity_row": "identity" in by_key,
        "cards": [by_key[key] for key in _CARDS if key in by_key],
    }


def context(*, user: User, request: ApprovalRequest, seen: Seating) -> dict[str, Any]:
    """All of the page but what was typed."""
    proposal, now = request.proposal, clock.now()
    stands = standing(user=user, request=request, seen=seen)
    facts = exposure.facts_of(request)
    verdict = exposure.judged(request=request, facts=facts)
    payload = proposal.action().payload()
    return {
        "section": "approvals",
        "now": now,
        "ask": request,
        "run": request.run,
        "proposal": proposal,
        "money": amount(request),
        "title_parts": title_parts(request),
        "changed": changes(user=user, request=request),
        "promises": promises(request),
        **_page_rows(request, facts),
        "payload": json.dumps(payload, indent=2, ensure_ascii=False),
        "payload_fields": len(proposal.effect),
        "payload_bytes": len(proposal.action().canonical()),
        "workings": _workings(request),
        "evidence": _evidence(request),
        "under_way": exposure.under_way(request=request),
        "shares": exposure.shares(verdict=verdict),
        **stages.context(seated=seen),
        "together": exposure.together(verdict=verdict),
        "history": chain.history(request=request, operation=stands.operation, outcome=stands.outcome),
        "run_url": reverse("run", args=[request.run_id]),
        **bar_context(request=request, stands=stands, seen=seen),
    }


def bar_context(*, request: ApprovalRequest, stands: Standing, seen: Seating) -> dict[str, Any]:
    """What the status line and the bar at the bottom need; the page refreshes these by themselves."""
    return {
        "ask": request,
        "money": amount(request),
        "stands": stands,
        "can_decide": stands.objection is None,
        "held": stands.held,
        "why_not": why_not(request=request, objection=stands.objection),
        "decided_by_me": stands.objection is not None and bool(stands.objection.detail.get("yours")),
        "group": asked.asked_words(request),
        "progress": asked.progress(request, yes=heard.yes_in(seated=seen)),
        "successor": (successor := _successor(request, stands)),
        "looks_on": not stands.outcome.settled
        or (request.state == RequestState.SUPERSEDED and not successor and not request.run.is_over),
        "user": seen.user,
    }


def _successor(request: ApprovalRequest, stands: Standing) -> str:
    if stands.objection is not None and stands.objection.code == "superseded":
        return str(stands.objection.detail.get("successor", ""))
    return ""
