"""What people write to each other about a request, which never changes; and who says that they are looking at it."""

from django.db import models
from django.db.models import Q

from approvals.models.request import ApprovalRequest
from runs.ids import new_id
from runs.models import Principal


class Remark(models.Model):
    """A comment, a question to those who ask, or the answer to one. Plain text, immutable."""

    class Kind(models.TextChoices):
        COMMENT = "comment"
        QUESTION = "question"
        ANSWER = "answer"

    class Of(models.TextChoices):
        REQUESTER = "requester", "Whoever raised this"
        SUPPORT = "support", "Support staff"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="remarks")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    author = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    text = models.TextField()
    asked_of = models.CharField(max_length=9, choices=Of.choices, blank=True, help_text="who is to answer a question")
    answers = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="answer", help_text="the question"
    )
    channel = models.CharField(max_length=20, help_text="page, api, command")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="remark_has_text", condition=~Q(text__regex=r"^\s*$")),
            models.CheckConstraint(
                name="remark_answers_iff_answer",
                condition=Q(kind="answer", answers__isnull=False) | (~Q(kind="answer") & Q(answers__isnull=True)),
            ),
            models.CheckConstraint(
                name="remark_asked_of_iff_question",
                condition=(Q(kind="question") & ~Q(asked_of="")) | (~Q(kind="question") & Q(asked_of="")),
            ),
        ]
        indexes = [models.Index(name="remark_of_request", fields=["request", "at"])]

    def __str__(self) -> str:
        return f"{self.kind} by {self.author}"


class Claim(models.Model):
    """Somebody is looking at a request, until a time. It keeps nobody from answering."""

    request = models.OneToOneField(ApprovalRequest, primary_key=True, on_delete=models.PROTECT, related_name="claim")
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    until = models.DateTimeField(help_text="it lapses then by itself")

    def __str__(self) -> str:
        return f"{self.principal} until {self.until:%H:%M}"
