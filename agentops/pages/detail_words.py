"""The words for what an event of the record carries: its keys as labels, its states and answers as people read them."""

from collections.abc import Callable

from agentops.pages import reversal_words
from agentops.pages.story import POLICY_WORDS, PROBE_WORDS, WAIT_WORDS, state_word
from reconciliation.models import Case
from runs import words
from runs.models.run import RunState

# keys without words here are shown as they are stored
_LABELS = {
    "about": "About",
    "account": "Account",
    "account_name": "Account name",
    "act": "Act",
    "added": "Added by hand",
    "after": "After",
    "also": "Asked as well",
    "amount_minor": "Amount",
    "ask": "Asks",
    "asked_of": "Asked of",
    "attempts": "Attempts",
    "authenticated_by": "Signed in by",
    "binding_digest": "Digest of what is approved",
    "business_key": "Business key",
    "by": "By",
    "call": "Model call",
    "capabilities": "What it may do",
    "case": "Case",
    "case_kind": "Kind of case",
    "changes": "What changed",
    "channel": "Answered through",
    "choice": "Choice",
    "clock": "Time counts as",
    "code": "Code",
    "comment": "Comment",
    "conclusive": "Conclusive",
    "conditions": "Conditions",
    "confirm": "An approval takes",
    "confirmed": "Confirmed by",
    "counted": "Whose approvals count",
    "credit_note": "Credit note",
    "credit_note_id": "Id of the credit note",
    "currency": "Currency",
    "customer": "Customer",
    "decision": "Decision",
    "detail": "Detail",
    "document": "Document",
    "effect": "Effect",
    "event": "Event",
    "evidence": "Evidence",
    "finding": "Finding",
    "freeze": "Freeze",
    "group": "Group",
    "groups": "Groups",
    "id": "Id",
    "identity": "Identity",
    "in_turn": "In turn",
    "incident": "Incident",
    "input": "What it began with",
    "instead_of": "Instead of",
    "invoice": "Invoice",
    "invoice_id": "Id of the invoice",
    "invoice_version": "Version of the invoice",
    "key": "Key",
    "kind": "Kind",
    "label": "Label",
    "memo": "Memo",
    "model": "Model",
    "name": "Name",
    "number": "Number",
    "operation": "Operation",
    "other": "Other run",
    "page_digest": "Digest of the page",
    "people": "People",
    "permission": "Right that was needed",
    "pieces": "Sources",
    "policy": "Policy",
    "policy_version": "Policy version",
    "process": "Process",
    "proposal": "Proposal",
    "proposed_by": "Proposed by",
    "question": "Question",
    "quorum": "People needed",
    "reading": "Reading",
    "reason": "Reason",
    "reference": "Their reference",
    "refusal": "Refused because",
    "refusal_code": "Code of the refusal",
    "reject_at": "No votes that end it",
    "remark": "Remark",
    "request": "Request",
    "respond_by": "Answer by",
    "result": "Result",
    "reversal": "Reversal",
    "reverses": "Reverses",
    "rules": "Rules",
    "run_id": "Its run",
    "seconds": "For",
    "short": "Its short name",
    "signal": "Signal",
    "source": "From",
    "stage": "Stage",
    "stage_id": "Id of the stage",
    "stages": "Stages",
    "standing": "Standing approval",
    "statement": "Statement",
    "step": "Step",
    "subject": "About",
    "summary": "Summary",
    "supersedes": "Takes the place of",
    "target": "To",
    "terms": "Terms",
    "text": "Text",
    "ticket": "Ticket",
    "title": "Title",
    "to": "To",
    "tool": "Tool",
    "tries": "Tries",
    "undone_by": "Undone by",
    "until": "Until",
    "valid_until": "Usable until",
    "verdict": "Verdict",
    "version": "Version",
    "vote": "Vote",
    "votes": "Votes",
    "votes_for": "Votes for it",
    "wait": "Wait",
    "was": "Our record said",
    "when_late": "If nobody answers",
    "why": "Why",
    "wire_key": "Key on the wire",
    "workflow": "Workflow",
    "workflow_version": "Version of the workflow",
}
_LABELS_OF_KIND = {
    ("evidence.failed", "source"): "Source",
    ("policy.checked", "effect"): "It says",
    ("run.started", "title"): "Run",
    ("", "source"): "Source",
}
SECONDS = ("seconds", "within")
TOOLS = ("tool", "undone_by", "capabilities")
CODES = ("act", "business_key", "code", "identity", "key", "permission", "refusal_code", "reverses", "wire_key")
# pages that a key's value leads to, by their names
PAGES = {
    "operation": "operation",
    "run_id": "run",
    "other": "run",
    "request": "decision",
    "supersedes": "decision",
    "standing": "standing_one",
    "case": "case",
}


def _operation_state(stored: str) -> str:
    return words.look(kind="operation", state=stored).word


_VALUES: dict[tuple[str, str], Callable[[str], str]] = {
    ("run.state", "source"): lambda stored: state_word(stored) if stored in RunState.values else "",
    ("run.state", "target"): lambda stored: state_word(stored) if stored in RunState.values else "",
    ("operation.state", "source"): _operation_state,
    ("operation.state", "target"): _operation_state,
    ("operation.corrected", "source"): _operation_state,
    ("operation.corrected", "target"): _operation_state,
    ("attempt.closed", "result"): lambda stored: words.look(kind="attempt", state=stored).word,
    ("probe.made", "finding"): lambda stored: PROBE_WORDS.get(stored, ("",))[0],
    ("policy.checked", "effect"): lambda stored: POLICY_WORDS.get(stored, ("",))[0],
    ("wait.ended", "result"): lambda stored: WAIT_WORDS.get(stored, ("",))[0],
    ("reversal.ended", "result"): lambda stored: _word(reversal_words.STATES, stored),
    ("case.opened", "case_kind"): lambda stored: str(dict(Case.Kind.choices).get(stored, "")),
    ("case.proposed", "verdict"): lambda stored: str(dict(Case.Verdict.choices).get(stored, "")),
    ("case.resolved", "verdict"): lambda stored: str(dict(Case.Verdict.choices).get(stored, "")),
}


def _word(looks: dict[str, words.Look], stored: str) -> str:
    return looks[stored].word if stored in looks else ""


def label(*, kind: str, key: str) -> str:
    """What a key of an event of this kind is called (`kind` is empty for an object inside one); empty: no words."""
    return _LABELS_OF_KIND.get((kind, key)) or _LABELS.get(key, "")


def value(*, kind: str, key: str, stored: str) -> str:
    """A stored state, answer or kind as people read it; empty where it has no words but its own."""
    found = _VALUES.get((kind, key))
    return found(stored) if found else ""
