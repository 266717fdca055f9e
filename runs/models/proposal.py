"""What the agent was shown and answered, and the typed proposals that were accepted from it."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.actions import Action
from runs.ids import new_id
from runs.models.principal import Principal
from runs.models.run import Run


class ModelCall(models.Model):
    """One turn of a model: exactly what it saw, exactly what it answered, and what became of the answer."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="model_calls")
    reading = models.PositiveIntegerField(help_text="the reading of evidence it was shown")
    provider = models.CharField(max_length=60)
    model = models.CharField(max_length=120)
    view = models.JSONField(help_text="the constructed view")
    answer = models.JSONField(null=True, blank=True, help_text="as it came, before any check")
    messages = models.JSONField(null=True, blank=True, help_text="the provider's own transcript, if it has one")
    usage = models.JSONField(default=dict)
    refusal_code = models.CharField(max_length=60, blank=True)
    refusal = models.TextField(blank=True, help_text="the reason, in words the model can use")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.model} at {self.finished_at:%H:%M:%S}"


class Proposal(models.Model):
    """One action, never changed: an edit makes a successor. Its operation's identity exists from here on."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="proposals")
    number = models.PositiveIntegerField(help_text="within the run, from 1")
    step = models.CharField(max_length=60, help_text="the workflow's name for what this action is for")
    predecessor = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="successors")
    proposer = models.ForeignKey(Principal, on_delete=models.PROTECT, related_name="+")
    model_call = models.OneToOneField(
        ModelCall, null=True, blank=True, on_delete=models.PROTECT, related_name="proposal"
    )
    tool = models.CharField(max_length=80)
    contract_version = models.CharField(max_length=20)
    effect = models.JSONField(help_text="normalised fields, all text")
    action_digest = models.CharField(max_length=64)
    identity = models.CharField(max_length=200, unique=True, help_text="<installation>/<tool>/<uuid7>")
    business_key = models.CharField(max_length=300)
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    reading = models.PositiveIntegerField(help_text="the reading of evidence it rests on")
    rests_on = models.JSONField(help_text="evidence ids whose change voids a decision about it")
    workings = models.JSONField(
        default=dict, help_text="how the system worked the amount out, beside the agent's figures"
    )
    rationale = models.TextField(blank=True, help_text="the proposer's own words")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="proposal_number_once", fields=["run", "number"]),
            # money is whole, positive minor units with a currency, or there is none at all
            models.CheckConstraint(
                name="proposal_money_whole",
                condition=Q(amount_minor__isnull=True, currency="")
                | Q(
                    amount_minor__isnull=False,  # or it would be neither true nor false, which a check lets pass
                    amount_minor__gt=0,
                    amount_minor__lt=10**15,
                    currency__regex=r"^[A-Z]{3}$",
                ),
            ),
        ]
        indexes = [models.Index(name="proposal_tool", fields=["tool"])]  # lists of approvals are narrowed by it

    def __str__(self) -> str:
        return f"{self.tool} {self.number}"

    def action(self) -> Action:
        return Action(tool=self.tool, contract_version=self.contract_version, effect=self.effect)
