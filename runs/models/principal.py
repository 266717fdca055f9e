"""Who acts: a person, an integration, a service, an agent, a workflow or the system itself. "Unknown" is nobody."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.ids import new_id


class Principal(models.Model):
    class Kind(models.TextChoices):
        PERSON = "person"
        INTEGRATION = "integration"
        SERVICE = "service"
        AGENT = "agent"
        WORKFLOW = "workflow"
        SYSTEM = "system"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    key = models.CharField(max_length=200, unique=True, help_text="stable name, such as agent:service-credit")
    label = models.CharField(max_length=200, help_text="how people read it")
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="principal"
    )

    class Meta:
        constraints = [
            # a person is a user and nothing else is, so no machine can ever be counted as a voter
            models.CheckConstraint(
                name="principal_person_has_user",
                condition=Q(kind="person", user__isnull=False) | (~Q(kind="person") & Q(user__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return self.label


class ApiToken(models.Model):
    """A token of an integration. Only its SHA-256 is kept; the token itself is shown once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    principal = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="tokens")
    label = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    may_operate = models.BooleanField(
        default=False, db_default=False, help_text="may operate its own runs, and freeze; fixed when made"
    )

    def __str__(self) -> str:
        return f"{self.label} ({self.principal})"
