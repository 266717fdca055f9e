"""The one stage of a request that a test made by itself, and votes in it."""

from approvals.models import ApprovalRequest, Stage, Vote


def one(request: ApprovalRequest) -> Stage:
    """The request's only stage, made where there is none."""
    fields = {"name": request.group, "groups": [request.group], "quorum": request.quorum}
    stage, _ = Stage.objects.get_or_create(
        request=request, position=1, defaults={**fields, "opened_at": request.created_at}
    )
    return stage


def made_by(request: ApprovalRequest, *, approved: bool) -> list[str]:
    """The votes that a decision names."""
    votes = Vote.objects.filter(request=request, choice="approve" if approved else "reject")
    return [str(one.pk) for one in votes.order_by("at", "id")]
