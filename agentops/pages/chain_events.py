"""What the record says of a request's stages, handing on, reminders and escalations, for its history."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

from agentops import asked
from approvals.models import ApprovalRequest
from runs import record
from runs.models import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    at: dt.datetime
    icon: str
    who: str
    text: str
    colour: str = ""
    note: str = ""


_TOLD: dict[str, tuple[str, str]] = {
    "request.stage_opened": ("arrow-right", ""),
    "request.stage_reopened": ("rotate-ccw", "amber"),
    "request.counted": ("check", "green"),
    "request.handed_on": ("forward", ""),
    "request.added": ("user-plus", ""),
    "request.escalated": ("trending-up", "amber"),
    "request.reminded": ("bell", ""),
    "request.moved_on": ("snowflake", ""),
}


def happened(*, requests: list[ApprovalRequest]) -> list[Entry]:
    """What the record says of stages, handing on, reminders and escalations of these requests, which are one run's."""
    if not requests:
        return []
    ids = {str(request.pk) for request in requests}
    found = Event.objects.filter(
        stream=record.stream_of(run_id=requests[0].run_id), kind__in=list(_TOLD)
    ).select_related("actor")
    return [_entry(one.kind, one.at, str(one.actor), one.data) for one in found if one.data.get("request") in ids]


def _entry(kind: str, at: dt.datetime, actor: str, data: dict[str, Any]) -> Entry:
    icon, colour = _TOLD[kind]
    name = asked.group_words(str(data.get("stage", "")))
    text = {
        "request.stage_opened": f"asked {name}, whose turn it is",
        "request.stage_reopened": f"asked {name} again",
        "request.counted": f"counted again what {data.get('counted', '')} had approved: {name} has enough now",
        "request.handed_on": f"handed {name} on to {asked.group_words(str(data.get('to', '')))}",
        "request.added": f"added {data.get('to', '')}, who has to approve as well",
        "request.escalated": f"asked {asked.group_words(str(data.get('also', '')))} as well",
        "request.reminded": f"reminded {data.get('people', '')} of those asked",
        "request.moved_on": "moved the time to answer on, by what a freeze had stopped it",
    }[kind]
    return Entry(at=at, icon=icon, colour=colour, who=actor, text=text, note=str(data.get("why") or ""))
