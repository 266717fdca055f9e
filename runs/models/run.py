"""A run: a unit of agent work, its state and what it waits for. The edges are the design's, declared once here."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django_fsm import transition

from runs.ids import new_id
from runs.models.principal import Principal
from runs.models.state_field import StateField


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    GATHERING = "gathering", "Gathering"
    DECIDING = "deciding", "Deciding"
    AUTHORISING = "authorising", "Checking policy"
    AWAITING_APPROVAL = "awaiting_approval", "Approval"
    EXECUTING = "executing", "Carrying out"
    OUTCOME_UNKNOWN = "outcome_unknown", "Not confirmed"
    WAITING = "waiting", "Waiting"
    NEEDS_PERSON = "needs_person", "Needs a person"
    COMPLETED = "completed", "Completed"
    REJECTED = "rejected", "Rejected"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"


S = RunState
TERMINAL = (S.COMPLETED, S.REJECTED, S.CANCELLED, S.FAILED)
LIVE = tuple(state for state in S if state not in TERMINAL)


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    state = StateField(choices=S.choices, default=S.QUEUED, max_length=30)
    workflow = models.CharField(max_length=80)
    workflow_version = models.CharField(max_length=20)
    start_key = models.CharField(max_length=200, unique=True, help_text="the starting event's own id makes it once")
    input = models.JSONField(help_text="the workflow's own input, validated at the start")
    input_digest = models.CharField(max_length=64)
    title = models.CharField(max_length=300)
    subject = models.CharField(max_length=200, help_text="what it is about elsewhere, such as the ticket's number")
    customer = models.CharField(max_length=300, blank=True)
    capabilities = models.JSONField(default=list, help_text="tools this run may use, fixed at the start")
    terms = models.JSONField(default=dict, help_text="by tool, what narrows it: only, when, until; fixed at the start")

    initiator = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    run_as = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")

    created_at = models.DateTimeField(db_default=Now())
    state_since = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.TextField(blank=True, help_text="what came of it, in a sentence")

    # what it waits for; wake_at is the one due time, NULL while only a person or an event can go on
    wake_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    waits_for = models.CharField(max_length=300, blank=True)
    waits_on = models.CharField(
        max_length=300, blank=True, db_default="", default="", help_text="the shared thing it waits for, by its key"
    )
    resume_to = models.CharField(max_length=30, blank=True, choices=S.choices)
    facts_wanted_at = models.DateTimeField(null=True, blank=True, help_text="since when somebody wants the facts read")

    woken = models.BooleanField(default=False, help_text="somebody wanted it while a worker held it")

    # one worker at a time: the token only ever grows, and guards every write that advances the run
    lease_token = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_holder = models.CharField(max_length=200, blank=True)
    claims_in_row = models.PositiveIntegerField(default=0, help_text="claims since a step last succeeded")

    event_seq = models.BigIntegerField(default=0)
    event_hash = models.CharField(max_length=64, blank=True)

    paused_at = models.DateTimeField(null=True, blank=True)
    frozen_by = models.UUIDField(null=True, blank=True, help_text="the freeze under which it parked")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_reason = models.TextField(blank=True)
    cancelled_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    person_code = models.CharField(max_length=60, blank=True, help_text="why a person is needed: a stable code")
    person_reason = models.TextField(blank=True)
    owner = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    refusals = models.JSONField(default=list, help_text="why the agent's last choices were refused, in a row")
    tries_in_row = models.PositiveIntegerField(default=0, help_text="failed reads or model calls since one worked")
    times_out_of_date = models.PositiveIntegerField(default=0)

    any_freeze: bool | None = None  # was anything frozen as the row was read? None: not asked along. No column

    class Meta:
        permissions = [("operate_run", "Can cancel runs and settle what needs a person")]
        indexes = [
            models.Index(
                name="run_due", fields=["wake_at"], condition=Q(finished_at__isnull=True, wake_at__isnull=False)
            ),
            models.Index(name="run_waits_on", fields=["waits_on"], condition=~Q(waits_on="")),
            models.Index(
                name="run_awaits",
                fields=["waits_for"],
                opclasses=["varchar_pattern_ops"],
                condition=Q(state="awaiting_approval"),
            ),
            models.Index(name="run_frozen", fields=["frozen_by", "id"], condition=Q(frozen_by__isnull=False)),
            models.Index(name="run_newest", fields=["-created_at", "-id"]),
            models.Index(name="run_state", fields=["state", "state_since"]),
        ]
        constraints = [
            models.CheckConstraint(name="run_state_known", condition=Q(state__in=S.values)),
            # a finished run has a finish, and only a finished one: no row is both over and picked up again
            models.CheckConstraint(
                name="run_terminal_iff_finished",
                condition=Q(state__in=TERMINAL, finished_at__isnull=False)
                | (~Q(state__in=TERMINAL) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="run_waiting_resumes",
                condition=~Q(state=S.WAITING) | Q(resume_to__in=["gathering", "deciding", "authorising", "executing"]),
            ),
            models.CheckConstraint(
                name="run_needs_person_says_why", condition=~Q(state=S.NEEDS_PERSON) | ~Q(person_code="")
            ),
            # nothing is lost: a live run is due, or leased, or waits on something named
            models.CheckConstraint(
                name="run_never_forgotten",
                condition=Q(finished_at__isnull=False)
                | Q(wake_at__isnull=False)
                | Q(lease_until__isnull=False)
                | ~Q(waits_for=""),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    def as_state(self) -> RunState:
        return RunState(self.state)

    # ---- the machine
    @transition(
        field=state,
        source=[S.QUEUED, S.WAITING, S.AWAITING_APPROVAL, S.EXECUTING, S.OUTCOME_UNKNOWN, S.NEEDS_PERSON],
        target=S.GATHERING,
    )
    def gather(self) -> None:
        """Read the facts: at the start, after a wait, and whenever they turned out to be out of date."""

    @transition(
        field=state,
        source=[
            S.GATHERING,
            S.AUTHORISING,
            S.AWAITING_APPROVAL,
            S.EXECUTING,
            S.OUTCOME_UNKNOWN,
            S.WAITING,
            S.NEEDS_PERSON,
            S.DECIDING,
        ],
        target=S.DECIDING,
    )
    def decide(self) -> None:
        """Ask the agent what to do: with new facts, after a refusal, or after the last action's outcome."""

    @transition(
        field=state,
        source=[S.GATHERING, S.DECIDING, S.AWAITING_APPROVAL, S.EXECUTING, S.WAITING, S.NEEDS_PERSON],
        target=S.AUTHORISING,
    )
    def authorise(self) -> None:
        """Ask the policy about the proposal in hand."""

    @transition(field=state, source=S.AUTHORISING, target=S.AWAITING_APPROVAL)
    def ask(self) -> None:
        """People are asked; the run parks."""

    @transition(
        field=state,
        source=[S.AUTHORISING, S.AWAITING_APPROVAL, S.OUTCOME_UNKNOWN, S.WAITING, S.NEEDS_PERSON],
        target=S.EXECUTING,
    )
    def execute(self) -> None:
        """A decision stands: carry the action out, or go on after it was settled."""

    @transition(field=state, source=S.EXECUTING, target=S.OUTCOME_UNKNOWN)
    def lose_track(self) -> None:
        """The call may or may not have worked; nothing else happens until that is known."""

    @transition(field=state, source=[S.GATHERING, S.DECIDING, S.EXECUTING], target=S.WAITING)
    def wait(self) -> None:
        """Held by time, an event or a dependency; `resume_to` says where it goes on."""

    @transition(
        field=state,
        source=[S.GATHERING, S.DECIDING, S.AUTHORISING, S.AWAITING_APPROVAL, S.EXECUTING, S.OUTCOME_UNKNOWN],
        target=S.NEEDS_PERSON,
    )
    def need_person(self) -> None:
        """The machine is at its end; `person_code` and `person_reason` say why."""

    @transition(field=state, source=[S.DECIDING, S.EXECUTING, S.NEEDS_PERSON], target=S.COMPLETED)
    def complete(self) -> None:
        """Everything meant was done, or there was nothing to do."""

    @transition(field=state, source=[S.AUTHORISING, S.AWAITING_APPROVAL], target=S.REJECTED)
    def reject(self) -> None:
        """A person, or the policy, said no."""

    @transition(field=state, source=[S.EXECUTING, S.NEEDS_PERSON], target=S.FAILED)
    def fail(self) -> None:
        """Proved not done, and given up."""

    @transition(field=state, source=list(LIVE), target=S.CANCELLED)
    def cancel(self) -> None:
        """Stopped by a person, after what was in flight is settled."""
