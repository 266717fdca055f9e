"""A request for approval, frozen as it was shown; the refusals it met; who opened it."""

import datetime as dt

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django_fsm import transition

from approvals import confirming
from approvals.models.policy import PolicyVersion
from runs.ids import new_id
from runs.models import Principal, Proposal, Run
from runs.models.state_field import StateField


class RequestState(models.TextChoices):
    OPEN = "open", "Waiting"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    EXPIRED = "expired", "Expired"
    SUPERSEDED = "superseded", "Out of date"
    WITHDRAWN = "withdrawn", "Withdrawn"
    SENT_BACK = "sent_back", "Sent back"
    SPENT = "spent", "Carried out"
    STALE = "stale", "Out of date"
    REVOKED = "revoked", "No longer allowed"


S = RequestState


class ApprovalRequest(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="approval_requests")
    proposal = models.ForeignKey(Proposal, on_delete=models.PROTECT, related_name="approval_requests")
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="superseded_by"
    )
    changes = models.JSONField(default=list, help_text="[{key, label, old, new}] against the superseded request")
    state = StateField(choices=S.choices, default=S.OPEN, max_length=12)
    ask = models.CharField(max_length=300, help_text="the one-sentence ask")
    # frozen when asked
    action_digest = models.CharField(max_length=64)
    binding_digest = models.CharField(max_length=64)
    page = models.JSONField(help_text="[{key, label, value}] of everything bound, as displayed")
    page_digest = models.CharField(max_length=64)
    policy_version = models.ForeignKey(PolicyVersion, on_delete=models.PROTECT, related_name="+")
    rules = models.JSONField(help_text="[{id, text}] of the rules that ask")
    group = models.CharField(max_length=150, help_text="the first that is asked; who may vote is in the stages")
    quorum = models.PositiveSmallIntegerField(default=1, help_text="how many people in all stages together")
    confirm = models.CharField(
        max_length=14, default="click", db_default="click", help_text="what a yes takes: click, retype, reauthenticate"
    )
    clock = models.CharField(max_length=8, default="elapsed", db_default="elapsed", help_text="elapsed or working time")
    when_late = models.CharField(max_length=8, default="expire", db_default="expire", help_text="expire or reject")
    created_at = models.DateTimeField(db_default=Now())
    respond_by = models.DateTimeField(help_text="people answer until then")
    stopped_for = models.DurationField(
        default=dt.timedelta,
        db_default=dt.timedelta(),
        help_text="how much later than first asked `respond_by` is: freezes stop that clock",
    )
    valid_until = models.DateTimeField(help_text="an approval may be used until then")
    closed_at = models.DateTimeField(null=True, blank=True, help_text="when it stopped being open")
    closed_by = models.ForeignKey(
        Principal,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="who ended it, unless votes did",
    )
    close_reason = models.TextField(blank=True)
    # copied from run and proposal by a trigger, for lists alone; `sql/indexes.sql` indexes the trigrams of `words`
    amount_minor = models.BigIntegerField(null=True, blank=True, editable=False)
    currency = models.CharField(max_length=3, blank=True, default="", db_default="", editable=False)
    words = models.TextField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="what it is searched by: customer, subject, sentence",
    )

    class Meta:
        permissions = [("vote", "Can approve and reject"), ("reassign", "Can hand requests on and add approvers")]
        constraints = [
            models.UniqueConstraint(name="request_one_open_per_run", fields=["run"], condition=Q(state="open")),
            models.CheckConstraint(name="request_state_known", condition=Q(state__in=S.values)),
            models.CheckConstraint(
                name="request_open_iff_not_closed",
                condition=Q(state="open", closed_at__isnull=True) | (~Q(state="open") & Q(closed_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="request_sent_back_has_reason",
                condition=~Q(state="sent_back") | ~Q(close_reason__regex=r"^\s*$"),
            ),
            models.CheckConstraint(name="request_quorum_positive", condition=Q(quorum__gte=1)),
            models.CheckConstraint(name="request_confirm_known", condition=Q(confirm__in=confirming.LEVELS)),
            models.CheckConstraint(name="request_clock_known", condition=Q(clock__in=["elapsed", "working"])),
            models.CheckConstraint(name="request_late_is_no", condition=Q(when_late__in=["expire", "reject"])),
        ]
        indexes = [
            # in this order lists are read; how long each has waited is in it, so that no row is fetched to learn it
            models.Index(
                name="request_open_soonest", fields=["respond_by", "id", "created_at"], condition=Q(state="open")
            ),
            models.Index(name="request_newest", fields=["-created_at"]),
            models.Index(name="request_open_same", fields=["action_digest"], condition=Q(state="open")),
            models.Index(name="request_open_group", fields=["group", "respond_by", "id"], condition=Q(state="open")),
            models.Index(
                name="request_open_amount", fields=["currency", "amount_minor", "id"], condition=Q(state="open")
            ),
            models.Index(name="request_amount", fields=["currency", "amount_minor", "id"]),
            models.Index(name="request_closed", fields=["-closed_at", "-id"], condition=Q(closed_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.ask

    @transition(field=state, source=S.OPEN, target=S.APPROVED)
    def approve(self) -> None:
        """Enough people said yes."""

    @transition(field=state, source=S.OPEN, target=S.REJECTED)
    def reject(self) -> None:
        """A person said no."""

    @transition(field=state, source=[S.OPEN, S.APPROVED], target=S.EXPIRED)
    def expire(self) -> None:
        """Nobody answered in time, or the approval was not used in time."""

    @transition(field=state, source=S.OPEN, target=S.SUPERSEDED)
    def supersede(self) -> None:
        """The facts moved while it waited; a successor asks again."""

    @transition(field=state, source=S.OPEN, target=S.WITHDRAWN)
    def withdraw(self) -> None:
        """The run was cancelled or ended, or whoever asks wants it no more."""

    @transition(field=state, source=S.OPEN, target=S.SENT_BACK)
    def send_back(self) -> None:
        """Whoever is asked cannot answer it as it is asked."""

    @transition(field=state, source=S.APPROVED, target=S.SPENT)
    def spend(self) -> None:
        """Its operation was created."""

    @transition(field=state, source=S.APPROVED, target=S.STALE)
    def go_stale(self) -> None:
        """The facts moved after the decision."""

    @transition(field=state, source=S.APPROVED, target=S.REVOKED)
    def revoke(self) -> None:
        """A voter lost the right, the policy changed, or the run was cancelled."""


class Refusal(models.Model):
    """An attempt to decide that was refused; recorded by the refusing path itself."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="refusals")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    code = models.CharField(max_length=40)
    detail = models.JSONField(default=dict)
    channel = models.CharField(max_length=20, help_text="page, api, command")
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.code} for {self.principal}"


class Viewing(models.Model):
    """Somebody opened the decision page; the first time counts, recorded by the page's own POST."""

    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="viewings")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(name="viewing_first_only", fields=["request", "principal"])]

    def __str__(self) -> str:
        return f"{self.principal} opened {self.request_id}"
