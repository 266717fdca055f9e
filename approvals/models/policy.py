"""Policies: versioned, immutable, one version of each active. A tool belongs to exactly one policy."""

from django.db import models
from django.db.models.functions import Now

from runs.ids import new_id
from runs.models import Principal


class Policy(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    active = models.ForeignKey(
        "PolicyVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="+", help_text="the one in force"
    )

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name


class PolicyTool(models.Model):
    """Which policy governs a tool; the key makes it one."""

    tool = models.CharField(max_length=80, primary_key=True)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="tools")

    def __str__(self) -> str:
        return self.tool


class PolicyVersion(models.Model):
    """`rules` is the whole document described in `approvals.rules`; it never changes once written."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    rules = models.JSONField()
    digest = models.CharField(max_length=64)
    note = models.TextField(blank=True)
    published_by = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    published_at = models.DateTimeField(db_default=Now())
    # what it was before; the first version, made when the product is set up, has none
    draft = models.OneToOneField("PolicyDraft", null=True, blank=True, on_delete=models.PROTECT, related_name="version")

    class Meta:
        constraints = [models.UniqueConstraint(name="policy_version_once", fields=["policy", "number"])]

    def __str__(self) -> str:
        return f"{self.policy} v{self.number}"
