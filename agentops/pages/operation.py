"""The page that explains one operation, to read or to print; and what each tool promises."""

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agentops.explain import explain, found
from agentops.pages import live
from agentops.pages.became import standing_sentence
from agentops.pages.decision_facts import repeat_words
from agentops.pages.undone import look, way
from reconciliation.corrections import correctable
from reconciliation.models.case import SETTLE, CaseState
from reconciliation.models.operation import OperationState
from runs import holding, times
from runs.access import needs
from runs.hiding import without_secrets
from runs.tools.base import Contract
from runs.tools.registry import SYSTEMS, TOOLS


@require_GET
@needs("runs.view_run")
def operation_page(request: HttpRequest, operation_id: uuid.UUID) -> HttpResponse:
    operation = found(operation_id=operation_id)
    if operation is None:
        raise Http404
    told = explain(operation=operation)
    context = {
        "section": "runs",
        "told": told,
        "operation": operation,
        "run": operation.run,
        "proposal": operation.proposal,
        "decision": operation.decision,
        "effect": without_secrets(operation.effect),
        "attempts": [
            {"it": one, "request": without_secrets(one.request), "answer": without_secrets(one.answer)}
            for one in told.attempts
        ],
        "learned": [{"seen": one, "raw": without_secrets(one.last.raw)} for one in told.learned],
        "corrections": [{"it": one, "before": without_secrets(one.before)} for one in told.corrections],
        "actual": without_secrets(operation.actual),
        "undone": [{"it": one, "look": look(reversal=one.reversal)} for one in told.undone],
        "way": way(operation=operation)
        if operation.state in (OperationState.SUCCEEDED, OperationState.COMPENSATED)
        else None,
        "keeps_key": operation.state == OperationState.COMPENSATED and not operation.anew_allowed,
        "may_settle": request.user.has_perm(SETTLE),
        "may_propose": request.user.has_perm(holding.OPERATE),
        "sentence": standing_sentence(operation=operation),
        "rows": live.rows(run_id=operation.run_id, events=told.events),
        "may_doubt": request.user.has_perm(SETTLE)
        and correctable(operation)
        and all(one.state == CaseState.RESOLVED for one in told.cases),
    }
    return render(request, "agentops/operation.html", context)


def _tool(name: str, known: Contract) -> dict[str, Any]:
    return {
        "name": name,
        "known": known,
        "system": SYSTEMS[known.system].title if known.system in SYSTEMS else known.system,
        "repeat": repeat_words(known),
        "retention": times.span(seconds=known.retention.total_seconds()) if known.retention else "",
        "settling": times.span(seconds=known.settling.total_seconds()),
        "final": times.span(seconds=known.final_within.total_seconds()) if known.final_within else "",
        "limit": times.span(seconds=known.call_limit.total_seconds()),
        "fields": list(known.effect.model_fields),
        "keeps_apart": known.resources is not Contract.__dataclass_fields__["resources"].default,
    }


@require_GET
@needs("runs.view_run")
def tools_page(request: HttpRequest) -> HttpResponse:
    tools = [_tool(name, TOOLS[name].contract) for name in sorted(TOOLS)]
    return render(request, "agentops/tools.html", {"section": "overview", "tools": tools})
