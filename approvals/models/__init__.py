"""Who allowed what."""

from approvals.models.absence import Absence, Remit
from approvals.models.allowance import Allowance
from approvals.models.bulk import BulkItem, BulkVote
from approvals.models.decision import Decision
from approvals.models.draft import DraftRevision, PolicyDraft
from approvals.models.endpoint import Delivery, Endpoint
from approvals.models.freeze import Freeze
from approvals.models.notice import Announcement, Notice, Preference
from approvals.models.policy import Policy, PolicyTool, PolicyVersion
from approvals.models.request import ApprovalRequest, Refusal, Viewing
from approvals.models.stage import Prompt, Stage
from approvals.models.standing import StandingApproval
from approvals.models.talk import Claim, Remark
from approvals.models.tally import Tally
from approvals.models.view import SavedView
from approvals.models.vote import Vote

__all__ = [
    "Absence",
    "Allowance",
    "Announcement",
    "ApprovalRequest",
    "BulkItem",
    "BulkVote",
    "Claim",
    "Decision",
    "Delivery",
    "DraftRevision",
    "Endpoint",
    "Freeze",
    "Notice",
    "Policy",
    "PolicyDraft",
    "PolicyTool",
    "PolicyVersion",
    "Preference",
    "Prompt",
    "Refusal",
    "Remark",
    "Remit",
    "SavedView",
    "Stage",
    "StandingApproval",
    "Tally",
    "Viewing",
    "Vote",
]
