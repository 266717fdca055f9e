"""The edges in the code, in the database and in the documents are the same ones."""

import pytest
from django.apps import apps

MACHINES = {
    "run": ("runs", "Run"),
    "request": ("approvals", "ApprovalRequest"),
    "operation": ("reconciliation", "Operation"),
    "reconciliation_case": ("reconciliation", "Case"),
    "policy_draft": ("approvals", "PolicyDraft"),
    "standing_approval": ("approvals", "StandingApproval"),
}


def declared(app: str, model: str) -> set[tuple[str, str]]:
    found = apps.get_model(app, model)
    field = found._meta.get_field("state")
    return {(str(edge.source), str(edge.target)) for edge in field.get_all_transitions(found)}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_database_holds_exactly_the_declared_edges(machine: str, db: str) -> None:
    from runs.models import StateEdge

    app, model = MACHINES[machine]
    stored = set(StateEdge.objects.filter(machine=machine).values_list("source", "target"))
    assert stored == declared(app, model)
    assert len(stored) >= 4


def test_the_document_shows_the_declared_machines() -> None:
    from django.conf import settings

    from agentops.machines import document

    written = (settings.BASE_DIR / "docs" / "state-machines.md").read_text()
    assert written == document(), "run manage.py state_machines"
    assert written.count("stateDiagram-v2") == len(MACHINES)
