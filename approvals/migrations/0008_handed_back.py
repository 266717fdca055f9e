"""A request may be sent back by whoever is asked; who ended it is kept with it."""

import django.db.models.deletion
import django_fsm
from django.db import migrations, models

from runs import db

STATES = ["open", "approved", "rejected", "expired", "superseded", "withdrawn", "sent_back", "spent", "stale", "revoked"]


class Migration(migrations.Migration):
    dependencies = [("approvals", "0007_confirm"), ("runs", "0006_batch_tries")]

    operations = [
        migrations.AddField(
            model_name="approvalrequest",
            name="closed_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="runs.principal",
                help_text="who ended it, unless votes did",
            ),
        ),
        migrations.AlterField(
            model_name="approvalrequest",
            name="state",
            field=django_fsm.FSMField(
                choices=[
                    ("open", "Waiting"),
                    ("approved", "Approved"),
                    ("rejected", "Rejected"),
                    ("expired", "Expired"),
                    ("superseded", "Out of date"),
                    ("withdrawn", "Withdrawn"),
                    ("sent_back", "Sent back"),
                    ("spent", "Carried out"),
                    ("stale", "Out of date"),
                    ("revoked", "No longer allowed"),
                ],
                default="open",
                max_length=12,
            ),
        ),
        migrations.RemoveConstraint(model_name="approvalrequest", name="request_state_known"),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(name="request_state_known", condition=models.Q(state__in=STATES)),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                name="request_sent_back_has_reason",
                condition=~models.Q(state="sent_back") | ~models.Q(close_reason__regex=r"^\s*$"),
            ),
        ),
        migrations.RunSQL(
            "INSERT INTO runs_stateedge (machine, source, target) VALUES ('request', 'open', 'sent_back')",
            migrations.RunSQL.noop,
        ),
        db.grant_also("approvals_approvalrequest", columns="closed_by_id"),
    ]
