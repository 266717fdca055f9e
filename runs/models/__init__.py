"""What was seen and proposed."""

from runs.models.batch import Batch, BatchItem
from runs.models.event import Event, StreamHead
from runs.models.evidence import Evidence
from runs.models.external_event import ExternalEvent
from runs.models.principal import ApiToken, Principal
from runs.models.proposal import ModelCall, Proposal
from runs.models.recurring import Recurring
from runs.models.run import Run
from runs.models.signal import Signal
from runs.models.state_edge import StateEdge
from runs.models.wait import Wait

__all__ = [
    "ApiToken",
    "Batch",
    "BatchItem",
    "Event",
    "Evidence",
    "ExternalEvent",
    "ModelCall",
    "Principal",
    "Proposal",
    "Recurring",
    "Run",
    "Signal",
    "StateEdge",
    "StreamHead",
    "Wait",
]
