"""An operation: one intended effect with one identity, whatever becomes of its attempts."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django_fsm import transition

from approvals.models import Allowance, Decision
from runs import words
from runs.ids import new_id
from runs.models import Proposal, Run
from runs.models.state_field import StateField


class OperationState(models.TextChoices):
    AUTHORISED = "authorised", "Waiting to run"
    SENDING = "sending", "Running"
    SUCCEEDED = "succeeded", "Completed"
    FAILED = "failed", "Failed"
    ACCEPTED = "accepted", "Accepted, not final"
    UNKNOWN = "unknown", "Not confirmed"
    ABANDONED = "abandoned", "Given up"
    COMPENSATED = "compensated", "Reversed"


S = OperationState
# the groups of states that rules are about, each named once
SETTLED = (S.SUCCEEDED, S.FAILED, S.ABANDONED, S.COMPENSATED)
UNCONFIRMED = (S.UNKNOWN, S.ACCEPTED)  # the other side is asked, or an admin settles it
IN_FLIGHT = (S.SENDING, *UNCONFIRMED)  # something was sent that may have happened, or may still
UNDER_WAY = (S.AUTHORISED, *IN_FLIGHT)  # one of these a run
HOLDS_KEY = (*UNDER_WAY, S.SUCCEEDED, S.COMPENSATED)
# nothing else is done for the same business key; what was undone keeps it until a person allows that it is done anew
KEY_TAKEN = Q(state__in=(*UNDER_WAY, S.SUCCEEDED)) | Q(state=S.COMPENSATED, anew_allowed=False) | Q(key_held=True)

SETTLED_ABSENT = "settled_absent"  # the failure code of what a person settled as not having happened


class Operation(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="operations")
    proposal = models.OneToOneField(Proposal, on_delete=models.PROTECT, related_name="operation")
    # spending a decision IS creating its operation: unique and never null
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="operation")
    state = StateField(choices=S.choices, default=S.AUTHORISED, max_length=12)
    # what this operation undoes, and which of the other side's records of it; without a constraint, for checking one
    # would lock a row of another run, and nobody ever locks two
    reverses = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="reversed_by", db_constraint=False
    )
    other_reversed = models.BooleanField(default=False, db_default=False, help_text="the second record of two")
    reverses_reference = models.CharField(max_length=200, blank=True, db_default="", default="")
    tool = models.CharField(max_length=80)
    contract_version = models.CharField(max_length=20)
    system = models.CharField(max_length=40)
    identity = models.CharField(max_length=200, unique=True)
    business_key = models.CharField(max_length=300)
    key_held = models.BooleanField(
        default=False, db_default=False, help_text="failed, in dispute: its business key stays taken"
    )
    anew_allowed = models.BooleanField(
        default=False, db_default=False, help_text="undone, and a person allowed that the same is done anew"
    )
    effect = models.JSONField()
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    epoch = models.PositiveIntegerField(default=0, help_text="raised only after conclusive absence")
    attempts_made = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    turn_at = models.DateTimeField(null=True, blank=True, help_text="its place in the line at a limited tool")
    unknown_since = models.DateTimeField(null=True, blank=True)
    probes_made = models.PositiveIntegerField(default=0)
    next_probe_at = models.DateTimeField(null=True, blank=True)
    look_wanted_at = models.DateTimeField(
        null=True, blank=True, help_text="told of something: it is looked up by a question put after this"
    )
    external_reference = models.CharField(max_length=200, null=True, blank=True)
    actual = models.JSONField(null=True, blank=True, help_text="what the other side has recorded")
    settled_by = models.CharField(max_length=20, blank=True, help_text="answer, probe or person")
    failure_code = models.CharField(
        max_length=60, blank=True, help_text="the other side's own code, or how absence was known"
    )
    failure = models.TextField(blank=True, help_text="the proof that nothing happened, in words")
    corrected = models.PositiveIntegerField(default=0, db_default=0)  # how often; each has its entry
    corrected_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="operation_state_known", condition=Q(state__in=S.values)),
            models.CheckConstraint(
                name="operation_settled_iff_time",
                condition=Q(state__in=SETTLED, settled_at__isnull=False)
                | (~Q(state__in=SETTLED) & Q(settled_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="operation_success_has_reference",
                condition=~Q(state="succeeded") | Q(external_reference__isnull=False),
            ),
            # one live or successful effect per business key ("one credit per ticket and incident")
            models.UniqueConstraint(
                name="operation_business_key_once",
                fields=["business_key"],
                condition=KEY_TAKEN,
            ),
            # actions of one run are sequential: the next begins when the last is settled
            models.UniqueConstraint(
                name="operation_one_open_per_run",
                fields=["run"],
                condition=Q(state__in=UNDER_WAY),
            ),
            # one external reference settles one operation
            models.UniqueConstraint(
                name="operation_reference_once",
                fields=["system", "external_reference"],
                condition=Q(external_reference__isnull=False),
            ),
            # one living or successful reversal of a record; one that was refused or proved undone frees the place
            models.UniqueConstraint(
                name="operation_reversed_once",
                fields=["reverses", "reverses_reference"],
                condition=Q(state__in=HOLDS_KEY, reverses__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="operation_unknown", fields=["unknown_since"], condition=Q(state__in=UNCONFIRMED)),
            models.Index(
                name="operation_probe_due", fields=["next_probe_at"], condition=Q(next_probe_at__isnull=False)
            ),
            models.Index(name="operation_by_run", fields=["run", "created_at"]),
        ]

    def __str__(self) -> str:
        return self.identity

    @property
    def is_settled(self) -> bool:
        return self.state in SETTLED

    @property
    def is_unconfirmed(self) -> bool:
        return self.state in UNCONFIRMED

    @property
    def other_reference(self) -> str:
        """The second record of what happened twice, while it stands; it has to be reversed on their side."""
        return "" if self.other_reversed else self.as_settled("other_reference")

    @property
    def by_evidence(self) -> bool:
        """A person settled it by evidence; the other side itself has not confirmed it to us."""
        return self.settled_by == "person"

    @property
    def settled_words(self) -> str:
        """Who or what settled it, to follow "by"."""
        system = words.system(self.system)
        known = {"answer": f"{system}'s answer", "probe": f"asking {system}", "person": "an admin's evidence"}
        return known.get(self.settled_by, self.settled_by)

    @property
    def is_different(self) -> bool:
        """A person settled that something else was recorded than was sent."""
        return bool(self.as_settled("differently") or self.as_settled("actual_minor"))

    @property
    def real_minor(self) -> int | None:
        """The amount that was really recorded, which is the one that was sent unless a person settled another; of what
        happened twice, that of the one that counts."""
        actual = self.as_settled("actual_minor")
        return int(actual) if actual else self.amount_minor

    @property
    def other_minor(self) -> int | None:
        """The amount of the second record of what happened twice; it is out until it is reversed."""
        if not self.other_reference:
            return None
        other = self.as_settled("other_minor")
        return int(other) if other else self.amount_minor

    def as_settled(self, name: str) -> str:
        """What the person who settled it said of `name` (differently, actual_minor, other_reference, other_minor), or
        nothing. In what the other side itself has recorded such a name would mean something else."""
        return str((self.actual or {}).get(name) or "") if self.settled_by == "person" else ""

    @transition(field=state, source=[S.AUTHORISED, S.UNKNOWN], target=S.SENDING)
    def send(self) -> None:
        """An attempt is open. From *unknown* only under the resend rule."""

    @transition(field=state, source=S.SENDING, target=S.AUTHORISED)
    def come_back(self) -> None:
        """Every attempt is proved to have had no effect; it may be tried later."""

    @transition(field=state, source=[S.SENDING, S.ACCEPTED, S.UNKNOWN], target=S.SUCCEEDED)
    def succeed(self) -> None:
        """The other side has recorded it."""

    @transition(field=state, source=[S.SENDING, S.ACCEPTED, S.UNKNOWN], target=S.FAILED)
    def fail(self) -> None:
        """Proved not done."""

    @transition(field=state, source=S.SENDING, target=S.ACCEPTED)
    def accept(self) -> None:
        """Taken on by the other side, outcome to follow."""

    @transition(field=state, source=S.SENDING, target=S.UNKNOWN)
    def lose_track(self) -> None:
        """It may have happened."""

    @transition(field=state, source=S.AUTHORISED, target=S.ABANDONED)
    def abandon(self) -> None:
        """Given up before anything could have happened; reservations are released."""

    @transition(field=state, source=S.SUCCEEDED, target=S.FAILED)
    def take_back(self) -> None:
        """By a correction only: nothing of it stands, although our record said that it happened."""

    @transition(field=state, source=S.FAILED, target=S.SUCCEEDED)
    def own_up(self) -> None:
        """By a correction only: it happened, although our record said that it did not."""

    @transition(field=state, source=S.SUCCEEDED, target=S.COMPENSATED)
    def compensate(self) -> None:
        """A reversal of it, an operation of its own, succeeded: nothing of it stands any more."""


class TheirName(models.Model):
    """A name that the other side has for a record which settles an operation: its reference, and what else it is
    called there. Each name settles one operation; a correction may give it up."""

    system = models.CharField(max_length=40)
    name = models.CharField(max_length=200)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="their_names")
    given_up = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="their_name_once", fields=["system", "name"], condition=Q(given_up=False))
        ]

    def __str__(self) -> str:
        return self.name


class Reservation(models.Model):
    """What an operation holds of an allowance: reserved while open or unknown, then settled or released."""

    class State(models.TextChoices):
        RESERVED = "reserved"
        SETTLED = "settled"
        RELEASED = "released"

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="reservations")
    allowance = models.ForeignKey(Allowance, on_delete=models.PROTECT, related_name="+")
    amount_minor = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.RESERVED)

    class Meta:
        constraints = [models.UniqueConstraint(name="reservation_once", fields=["operation", "allowance"])]

    def __str__(self) -> str:
        return f"{self.amount_minor} of {self.allowance_id}"
