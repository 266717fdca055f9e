"""What was seen and proposed."""

from runs.models.event import Event, StreamHead
from runs.models.evidence import Evidence
from runs.models.external_event import ExternalEvent
from runs.models.principal import ApiToken, Principal
from runs.models.proposal import ModelCall, Proposal
from runs.models.run import Run
from runs.models.signal import Signal
from runs.models.state_edge import StateEdge
from runs.models.wait import Wait

__all__ = [
    "ApiToken",
    "Event",
    "Evidence",
    "ExternalEvent",
    "ModelCall",
    "Principal",
    "Proposal",
    "Run",
    "Signal",
    "StateEdge",
    "StreamHead",
    "Wait",
]
