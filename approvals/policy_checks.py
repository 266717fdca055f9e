"""What only the database and the code can say against a policy: its groups, its tools, its name. Reads only."""

import re

from django.contrib.auth.models import Group

from approvals import expressions, rights
from approvals.models import Policy, PolicyTool
from approvals.rules import VARIABLES, PolicyDocument, Problem
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
    """A rule that asks people who cannot answer would let every request expire: an absent group means nobody."""
    problems = []
    asking = [(rule, rule.ask) for rule in document.rules if rule.ask is not None]
    voters = {group: rights.holders(group=group) for group in {ask.group for _, ask in asking}}
    existing = set(Group.objects.filter(name__in=voters).values_list("name", flat=True))
    waits = "every request of this rule would wait for nobody"
    for rule, ask in asking:
        group, quorum = ask.group, ask.quorum
        able = voters[group]
        if group not in existing:
            remedy = f"names {group}, which is not a group, so {waits}; name an existing one"
        elif able == 0:
            remedy = f"names {group}, in which nobody may vote: {waits}; add a member who holds the right to vote"
        elif able < quorum:
            remedy = f"asks {quorum} people of {group}, in which {able} may vote; ask fewer or add members"
        else:
            continue
        problems.append(Problem(where=rule.id, field="ask.group", remedy=remedy))
    return problems


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
