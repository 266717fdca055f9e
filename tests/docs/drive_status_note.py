"""Run inside a copy of the project with the examples applied: one status note, straight against the help desk.

Argument: the ticket. Prints one JSON object with what happened.
"""

import json
import sys

import django

django.setup()

from agentops.workflows.base import Complete, Done, Draft  # noqa: E402  # Django has to be set up first
from agentops.workflows.registry import workflow  # noqa: E402  # as above
from approvals.rules import VARIABLES  # noqa: E402  # as above
from runs.tools.registry import contract, tool  # noqa: E402  # as above

TEXT = "Engineering has found the cause."
note = workflow("status_note")
data = note.Input.model_validate({"ticket": sys.argv[1], "text": TEXT}).plain_dict()
facts = {fact.kind: fact for fact in note.gather(data=data)}
draft = note.follow(data=data, facts=facts, done=[])
assert isinstance(draft, Draft)
assert set(note.variables(action=draft.action, facts=facts)) <= set(VARIABLES)
card = note.card(action=draft.action, facts=facts)
assert {row.value for row in card.rows} >= set(draft.action.effect.values())
promised = contract(draft.action.tool)
promised.effect.model_validate(draft.action.effect)
comment = tool(draft.action.tool)
identity = f"docs/{draft.action.tool}/1"
absent = comment.look_up(effect=draft.action.effect, identity=identity)
sent = [comment.send(effect=draft.action.effect, identity=identity, wire_key=f"{identity}:0") for _ in range(2)]
found = comment.look_up(effect=draft.action.effect, identity=identity)
done = Done(
    step=draft.step,
    tool=draft.action.tool,
    effect=draft.action.effect,
    reference=sent[0].reference,
    at=sent[0].at,
    real_minor=None,
    by_evidence=False,
)
end = note.follow(data=data, facts=facts, done=[done])
assert isinstance(end, Complete)
print(
    json.dumps(
        {
            "identity": identity,
            "absent": len(absent.records),
            "references": [record.reference for record in (*sent, *found.records)],
            "mismatches": [record.mismatch for record in (*sent, *found.records)],
            "outcome": end.outcome,
            "key": promised.business_key(draft.action.effect),
        }
    )
)
