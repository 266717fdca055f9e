"""What we did to the world, and whether it is true."""

from reconciliation.models.attempt import Attempt, WorkerProcess
from reconciliation.models.case import Case, ProposedVerdict
from reconciliation.models.correction import Correction
from reconciliation.models.dependency import Dependency, ResourceHold
from reconciliation.models.notice import CaseNotice
from reconciliation.models.observation import Observation
from reconciliation.models.operation import Operation, Reservation, TheirName
from reconciliation.models.reversal import Reversal
from reconciliation.models.statement import Difference, Statement, StatementFile, StatementLine, StatementOurs

__all__ = [
    "Attempt",
    "Case",
    "CaseNotice",
    "Correction",
    "Dependency",
    "Difference",
    "Observation",
    "Operation",
    "ProposedVerdict",
    "Reservation",
    "ResourceHold",
    "Reversal",
    "Statement",
    "StatementFile",
    "StatementLine",
    "StatementOurs",
    "TheirName",
    "WorkerProcess",
]
