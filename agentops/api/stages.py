"""What a run asks of people, stage by stage, as the API tells it."""

from agentops import asked
from agentops.api.schemas import ApprovalOut, StageOut
from approvals import heard
from runs.models import Run


def newest(*, run: Run) -> ApprovalOut | None:
    """The newest request of the run; None while nobody was asked."""
    found = asked.newest(run=run)
    if found is None:
        return None
    yes = heard.yes(requests=[found])
    return ApprovalOut(
        id=found.pk,
        ask=found.ask,
        state=found.state,
        respond_by=found.respond_by,
        stages=[
            StageOut(
                name=asked.stage_words(one),
                state="done" if one.met_at else "asked" if one.is_asked else "later",
                approved=yes[one.pk],
                needed=one.quorum,
            )
            for one in asked.stages(found)
        ],
    )
