"""What only the database and the code can say against a policy: its groups, its tools, its name. Reads only."""

import re

from django.contrib.auth.models import Group

from approvals import expressions, voters
from approvals.models import Policy, PolicyTool
from approvals.requirement import StageNeed
from approvals.rules import VARIABLES, PolicyDocument, Problem
from approvals.voters import Known
from approvals.words import is_blank, storable
from runs.texts import one_line
from runs.tools.registry import TOOLS

NOTE_LENGTH = 4000


def name_problems(*, slug: str, name: str) -> list[Problem]:
    problems = []
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug) or len(slug) > 80:
        remedy = "write up to 80 small letters, digits and hyphens"
        problems.append(Problem(where="policy", field="slug", remedy=remedy))
    if is_blank(text=name) or len(name) > 120 or one_line(text=name, limit=120) != name:
        problems.append(Problem(where="policy", field="name", remedy="write one line of up to 120 characters"))
    return problems


def note_problems(*, note: str) -> list[Problem]:
    if len(note) > NOTE_LENGTH or storable(text=note) != note.strip():
        remedy = f"write readable text of up to {NOTE_LENGTH} characters"
        return [Problem(where="policy", field="note", remedy=remedy)]
    return []


def group_problems(*, document: PolicyDocument) -> list[Problem]:
    """A rule that asks people who cannot answer would let every request expire: an absent or empty group means
    nobody."""
    asking = [(rule, rule.ask) for rule in document.rules if rule.ask is not None]
    named = {group for _, ask in asking for stage in ask.chain() for group in stage.groups}
    named |= {step.group for _, ask in asking for step in ask.escalate or []}
    people = list(voters.known(groups=named).values())
    existing = set(Group.objects.filter(name__in=named).values_list("name", flat=True))
    problems: list[Problem] = []
    for rule, ask in asking:
        found = len(problems)
        for number, stage in enumerate(ask.chain(), start=1):
            if remedy := _nobody(stage, people, existing):
                field = f"ask.stages.{number}" if ask.stages else "ask.group"
                problems.append(Problem(where=rule.id, field=field, remedy=remedy))
        if ask.stages and len(problems) == found and (few := _too_few_together(ask.chain(), people)):
            problems.append(Problem(where=rule.id, field="ask.stages", remedy=few))
        for step in ask.escalate or []:
            if step.group not in existing or not any(step.group in one.groups for one in people):
                remedy = f"names {step.group}, in which nobody may vote, so it would ask nobody more; name another"
                problems.append(Problem(where=rule.id, field="ask.escalate", remedy=remedy))
    return problems


_WAITS = "every request of this rule would wait for nobody"


def _nobody(stage: StageNeed, people: list[Known], existing: set[str]) -> str:
    for group in stage.groups:
        if group not in existing:
            return f"names {group}, which is not a group, so {_WAITS}; name an existing one"
    names = " or ".join(stage.groups)
    members = [one for one in people if one.groups.intersection(stage.groups)]
    able = [one for one in members if meets(person=one, need=stage)]
    if not members:
        return f"names {names}, in which nobody may vote: {_WAITS}; add a member who holds the right to vote"
    if not able:
        return f"asks {names}, in which nobody who may vote meets its conditions: {_WAITS}; set what is asked of them"
    if len(able) < stage.quorum:
        return f"asks {stage.quorum} people of {names}, in which {len(able)} may vote; ask fewer or add members"
    return ""


def meets(*, person: Known, need: StageNeed) -> bool:
    """As far as it can be told without an amount."""
    wanted = need.person
    return (
        wanted.team in ("", person.team)
        and wanted.region in ("", person.region)
        and (not wanted.within_limit or bool(person.limits))
    )  # fmt: skip


def _too_few_together(chain: tuple[StageNeed, ...], people: list[Known]) -> str:
    """One person counts in one stage only: whether there are enough different ones for all of them."""
    seats = [
        [one.user.pk for one in people if one.groups.intersection(stage.groups) and meets(person=one, need=stage)]
        for stage in chain
        for _ in range(stage.quorum)
    ]
    taken: dict[int, int] = {}

    def place(seat: int, tried: set[int]) -> bool:
        for person in seats[seat]:
            if person not in tried:
                tried.add(person)
                if person not in taken or place(taken[person], tried):
                    taken[person] = seat
                    return True
        return False

    if all(place(seat, set()) for seat in range(len(seats))):
        return ""
    return "ask more different people than there are, as one person counts in one stage; ask fewer or add members"


def tool_problems(*, policy: Policy, tools: list[str]) -> list[Problem]:
    """A tool belongs to one policy, for good."""
    problems = []
    taken = PolicyTool.objects.exclude(policy=policy).filter(tool__in=tools).select_related("policy")
    for other in taken.order_by("tool"):
        remedy = f"names {other.tool}, which {other.policy.name} governs; a tool belongs to one policy"
        problems.append(Problem(where="policy", field="tools", remedy=remedy))
    for left_out in policy.tools.exclude(tool__in=tools).order_by("tool"):
        remedy = f"leaves out {left_out.tool}, which would then have no policy; list it, or write a rule that denies it"
        problems.append(Problem(where="policy", field="tools", remedy=remedy))
    if not tools or any(not 0 < len(tool) <= 80 for tool in tools):
        problems.append(Problem(where="policy", field="tools", remedy="name at least one, each up to 80 characters"))
    return problems


def unknown_tools(*, policy: Policy, tools: list[str]) -> list[Problem]:
    """A tool that is newly put under the policy has to exist here; one it has governed before may be gone."""
    had = set(policy.tools.values_list("tool", flat=True))
    known = ", ".join(sorted(TOOLS))
    return [
        Problem(where="policy", field="tools", remedy=f"names {tool[:80]}, which is not a tool; there are: {known}")
        for tool in tools
        if tool not in had and tool not in TOOLS
    ]


def condition_tools(*, document: PolicyDocument, tools: list[str]) -> list[Problem]:
    """A condition that names a tool of no concern to this policy is a slip of the pen: it would never hold."""
    problems = []
    for rule in document.rules:
        named = _named_tools(expressions.read(source=rule.when, schema=VARIABLES))
        for tool in sorted(named - set(tools)):
            remedy = f"names the tool {tool[:80]!r}, which this policy does not govern; it governs: {', '.join(tools)}"
            problems.append(Problem(where=rule.id, field="when", remedy=remedy))
    return problems


def _named_tools(node: expressions.Node) -> set[str]:
    if node.op in ("==", "!=", "in") and any(part.op == "name" and part.value == "tool" for part in node.parts):
        return {part.value for part in node.parts if part.op == "literal"}
    return set[str]().union(*(_named_tools(part) for part in node.parts))
