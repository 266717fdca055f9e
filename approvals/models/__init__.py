"""Who allowed what."""

from approvals.models.allowance import Allowance
from approvals.models.decision import Decision
from approvals.models.draft import DraftRevision, PolicyDraft
from approvals.models.freeze import Freeze
from approvals.models.policy import Policy, PolicyTool, PolicyVersion
from approvals.models.request import ApprovalRequest, Refusal, Viewing
from approvals.models.vote import Vote

__all__ = [
    "Allowance",
    "ApprovalRequest",
    "Decision",
    "DraftRevision",
    "Freeze",
    "Policy",
    "PolicyDraft",
    "PolicyTool",
    "PolicyVersion",
    "Refusal",
    "Viewing",
    "Vote",
]
