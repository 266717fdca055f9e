"""A statement: all that the other side says it recorded in a period, read from it or out of a file, line by line."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.models.case import Case
from reconciliation.models.operation import Operation
from runs.ids import new_id
from runs.models import Principal


class LineResult(models.TextChoices):
    """What a line of theirs, or an operation of ours, turned out to be. `missing` is ours alone; `duplicate`,
    `unknown`, `not_ours` and `unread` are theirs alone."""

    CONFIRMED = "confirmed", "As we have it"
    DIFFERENT = "different", "Differing"
    DUPLICATE = "duplicate", "Recorded more than once"
    UNCONFIRMED = "unconfirmed", "Not confirmed here"
    MISSING = "missing", "Here only"
    UNKNOWN = "unknown", "There only, under our name"
    NOT_OURS = "not_ours", "Not ours"
    UNREAD = "unread", "Unread"


R = LineResult


class Statement(models.Model):
    """Its parts of work follow each other: `read_at` every line is there, `matched_at` each line is judged,
    `finished_at` our own operations are judged as well. A person may stop it before that; nothing goes on then, until
    somebody continues it."""

    class Source(models.TextChoices):
        READ = "read", "Read from the system"
        FILE = "file", "Out of a file"

    number = models.BigAutoField(primary_key=True)
    key = models.UUIDField(unique=True, default=new_id, editable=False)
    system = models.CharField(max_length=40)
    source = models.CharField(max_length=4, choices=Source.choices)
    since = models.DateTimeField(null=True, blank=True, help_text="of a file: the time of its first record")
    until = models.DateTimeField(null=True, blank=True, help_text="the first moment after the period")
    asked_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    columns = models.JSONField(null=True, blank=True, help_text="of a file: where a line has what, and how")
    due_at = models.DateTimeField(null=True, blank=True, help_text="when a worker may go on with it")
    cursor = models.CharField(max_length=200, blank=True, help_text="up to where this part of the work is done")
    pages = models.PositiveIntegerField(default=0, help_text="pages, or parts of a file, that are stored")
    failures = models.PositiveIntegerField(default=0, help_text="in a row")
    problem = models.TextField(blank=True, help_text="why it does not go on, in words")
    read_at = models.DateTimeField(null=True, blank=True)
    matched_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="it is left as it is until it is continued")
    stopped_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    stopped_because = models.TextField(blank=True, help_text="why it was stopped last, as whoever did it gave it")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="statement_of_a_period",
                condition=Q(source="read", since__isnull=False, until__isnull=False, until__gt=models.F("since"))
                | Q(source="file"),
            ),
            models.CheckConstraint(
                name="statement_parts_in_order",
                condition=(Q(matched_at__isnull=True) | Q(read_at__isnull=False))
                & (Q(finished_at__isnull=True) | Q(matched_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="statement_due_until_finished",
                condition=Q(finished_at__isnull=False, due_at__isnull=True)
                | Q(finished_at__isnull=True, due_at__isnull=False)
                | Q(stopped_at__isnull=False, due_at__isnull=True)
                | Q(source="file", columns__isnull=True, due_at__isnull=True),
            ),
            models.CheckConstraint(
                name="statement_stopped_for_a_reason",
                condition=Q(stopped_at__isnull=True)
                | Q(finished_at__isnull=True, due_at__isnull=True, stopped_by__isnull=False) & ~Q(stopped_because=""),
            ),
        ]
        indexes = [models.Index(name="statement_due", fields=["due_at"], condition=Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return f"ST-{self.number}"

    @property
    def is_file(self) -> bool:
        return self.source == self.Source.FILE

    @property
    def stage(self) -> str:
        """columns (a person has to say what they mean), reading, matching, comparing, stopped or finished."""
        return "stopped" if self.stopped_at else self.part

    @property
    def part(self) -> str:
        """The part of the work that it is in, whether or not it was stopped there."""
        if self.is_file and self.columns is None:
            return "columns"
        if self.read_at is None:
            return "reading"
        if self.matched_at is None:
            return "matching"
        return "finished" if self.finished_at else "comparing"


class StatementFile(models.Model):
    """A file as it was uploaded, to the byte."""

    statement = models.OneToOneField(Statement, primary_key=True, on_delete=models.PROTECT, related_name="file")
    name = models.CharField(max_length=200)
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, db_index=True)
    encoding = models.CharField(max_length=12)
    delimiter = models.CharField(max_length=1)
    header = models.JSONField()

    def __str__(self) -> str:
        return self.name


class StatementLine(models.Model):
    """One record of theirs. `key` is its id there, or its place in the file, and comes once a statement."""

    id = models.BigAutoField(primary_key=True)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="lines")
    number = models.PositiveIntegerField(help_text="its place: in the file the line, else the order of reading")
    key = models.CharField(max_length=200)
    reference = models.CharField(max_length=200, blank=True)
    identity = models.CharField(max_length=200, blank=True)
    account = models.CharField(max_length=200, blank=True)
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    at = models.DateTimeField(null=True, blank=True)
    void = models.BooleanField(default=False, help_text="undone since, so it stands for nothing")
    raw = models.JSONField(default=dict)
    result = models.CharField(max_length=12, choices=R.choices, blank=True)
    tells = models.TextField(blank=True, help_text="what differs, or why it could not be read")
    operation = models.ForeignKey(Operation, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="statement_line_once", fields=["statement", "key"]),
            models.CheckConstraint(
                name="statement_line_read_or_not",
                condition=Q(result="unread")
                | Q(amount_minor__isnull=False, amount_minor__gte=0, at__isnull=False)
                & ~Q(currency="")
                & ~Q(reference=""),
            ),
            models.CheckConstraint(
                name="statement_line_judged_iff_result",
                condition=Q(result="", judged_at__isnull=True) | (~Q(result="") & Q(judged_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(name="statement_line_open", fields=["statement", "id"], condition=Q(judged_at__isnull=True)),
            models.Index(name="statement_line_order", fields=["statement", "number"]),
            models.Index(name="statement_line_result", fields=["statement", "result", "number"]),
            models.Index(name="statement_line_identity", fields=["statement", "identity"]),
            models.Index(name="statement_line_reference", fields=["statement", "reference"]),
        ]

    def __str__(self) -> str:
        return self.reference or self.key


class StatementOurs(models.Model):
    """One operation of ours beside a statement. `amount_minor` is what our record says stands: nothing, where it says
    that nothing was done or that it does not know."""

    id = models.BigAutoField(primary_key=True)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="ours")
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="+")
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3, blank=True)
    result = models.CharField(max_length=12, choices=R.choices)
    tells = models.TextField(blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(name="statement_ours_once", fields=["statement", "operation"])]

    def __str__(self) -> str:
        return f"{self.result}: {self.operation_id}"


class Difference(models.Model):
    """A difference that statements found, once however often they find it. One about an operation has a case; an effect
    under our name that no operation here has is noted on this row itself."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=64, unique=True)
    statement = models.ForeignKey(Statement, on_delete=models.PROTECT, related_name="differences")
    case = models.ForeignKey(Case, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    line = models.ForeignKey(StatementLine, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    found_at = models.DateTimeField(db_default=Now())
    evidence = models.TextField(blank=True)
    noted_by = models.ForeignKey(Principal, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    noted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="difference_has_case_or_line",
                condition=Q(case__isnull=False, noted_at__isnull=True) | Q(case__isnull=True, line__isnull=False),
            ),
            models.CheckConstraint(
                name="difference_noted_with_evidence",
                condition=Q(noted_at__isnull=True, noted_by__isnull=True, evidence="")
                | Q(noted_at__isnull=False, noted_by__isnull=False) & ~Q(evidence=""),
            ),
        ]
        indexes = [
            models.Index(
                name="difference_open", fields=["found_at"], condition=Q(case__isnull=True, noted_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return self.key
