"""Why a run needs a person: each reason once, with the words people read."""

from enum import StrEnum


class Reason(StrEnum):
    DOCUMENT_NEEDED = "document_needed"
    ESCALATED = "escalated"
    HANDED_OVER = "handed_over"
    FACTS_UNUSABLE = "facts_unusable"
    TICKET_GONE = "ticket_gone"
    NOT_FOUND = "not_found"
    APPROVAL_EXPIRED = "approval_expired"
    NOBODY_TO_ASK = "nobody_to_ask"
    SENT_BACK = "sent_back"
    WITHDRAWN = "withdrawn"
    AMOUNT_NOT_ALLOWED = "amount_not_allowed"
    KEEPS_CHANGING = "keeps_changing"
    PROPOSALS_REFUSED = "proposals_refused"
    MODEL_DOWN = "model_down"
    REFUSED_BY_SYSTEM = "refused_by_system"
    GAVE_UP = "gave_up"
    RECORDED_DIFFERENTLY = "recorded_differently"
    RECORDED_TWICE = "recorded_twice"
    SETTLED_ABSENT = "settled_absent"
    NOT_CARRIED_OUT = "not_carried_out"
    IN_DISPUTE = "in_dispute"
    KEEPS_FAILING = "keeps_failing"
    CANNOT_WAIT = "cannot_wait"
    # a decision that no longer counts, and that reading the facts again would not mend
    NO_DECISION = "no_decision"
    DENIED = "denied"
    REJECTED = "rejected"
    NOT_GRANTED = "not_granted"
    GRANT_OVER = "grant_over"
    GRANT_ELSEWHERE = "grant_elsewhere"
    GRANT_UNMET = "grant_unmet"
    GRANT_UNKNOWN = "grant_unknown"
    ALTERED = "altered"
    BUSINESS_KEY_TAKEN = "business_key_taken"
    OVER_LIMIT = "over_limit"
    REVERSED = "reversed"
    NOT_PROPOSED = "not_proposed"
    NOT_REVERSIBLE = "not_reversible"


WORDS: dict[Reason, str] = {
    Reason.DOCUMENT_NEEDED: "A document is missing",
    Reason.ESCALATED: "The agent handed it over",
    Reason.HANDED_OVER: "An operator handed it over",
    Reason.FACTS_UNUSABLE: "The facts cannot be used as they are",
    Reason.TICKET_GONE: "The ticket is gone",
    Reason.NOT_FOUND: "Something it is about does not exist",
    Reason.APPROVAL_EXPIRED: "Nobody answered in time",
    Reason.NOBODY_TO_ASK: "Too few people could decide it",
    Reason.SENT_BACK: "Whoever was asked sent it back",
    Reason.WITHDRAWN: "What was asked was withdrawn",
    Reason.AMOUNT_NOT_ALLOWED: "The amount that a person proposed is not allowed",
    Reason.KEEPS_CHANGING: "The facts kept changing",
    Reason.PROPOSALS_REFUSED: "The agent's proposals were refused",
    Reason.MODEL_DOWN: "The model could not be asked",
    Reason.REFUSED_BY_SYSTEM: "The other side refused",
    Reason.GAVE_UP: "It was given up after several attempts",
    Reason.RECORDED_DIFFERENTLY: "It was recorded differently",
    Reason.RECORDED_TWICE: "It was recorded twice",
    Reason.SETTLED_ABSENT: "An admin settled that it did not happen",
    Reason.NOT_CARRIED_OUT: "The other side took it on and did not carry it out",
    Reason.IN_DISPUTE: "What was done is in dispute",
    Reason.KEEPS_FAILING: "The work kept breaking off",
    Reason.CANNOT_WAIT: "It cannot wait for what it asked for",
    Reason.NO_DECISION: "Nobody has allowed it",
    Reason.DENIED: "What follows is not allowed",
    Reason.REJECTED: "It was rejected",
    Reason.NOT_GRANTED: "It was not granted this tool",
    Reason.GRANT_OVER: "What it was granted is over",
    Reason.GRANT_ELSEWHERE: "It was granted this for something else",
    Reason.GRANT_UNMET: "It was granted this under a condition that does not hold",
    Reason.GRANT_UNKNOWN: "Whether it was granted this cannot be told",
    Reason.ALTERED: "Stored records were altered",
    Reason.BUSINESS_KEY_TAKEN: "It has been done already",
    Reason.OVER_LIMIT: "A limit would be exceeded",
    Reason.REVERSED: "What it did is being undone",
    Reason.NOT_PROPOSED: "Nobody has proposed it",
    Reason.NOT_REVERSIBLE: "It cannot be undone as things stand",
}


def words(code: str) -> str:
    """The words for a run's code; a workflow's own code, which is not listed here, reads as it is written."""
    return WORDS[Reason(code)] if code in set(Reason) else code.replace("_", " ").capitalize()
