"""What is written on a request, kept for good, and who is looking at it."""

import django.db.models.deletion
from django.db import migrations, models

import runs.ids
from runs import db


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_handed_back"), ("runs", "0006_batch_tries")]

    operations = [
        migrations.CreateModel(
            name="Remark",
            fields=[
                (
                    "id",
                    models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("comment", "Comment"), ("question", "Question"), ("answer", "Answer")], max_length=8
                    ),
                ),
                ("text", models.TextField()),
                (
                    "asked_of",
                    models.CharField(
                        blank=True,
                        choices=[("requester", "Whoever raised this"), ("support", "Support staff")],
                        help_text="who is to answer a question",
                        max_length=9,
                    ),
                ),
                ("channel", models.CharField(help_text="page, api, command", max_length=20)),
                ("at", models.DateTimeField()),
                (
                    "answers",
                    models.OneToOneField(
                        blank=True,
                        help_text="the question",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answer",
                        to="approvals.remark",
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.principal"
                    ),
                ),
                (
                    "request",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="remarks",
                        to="approvals.approvalrequest",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["request", "at"], name="remark_of_request")],
                "constraints": [
                    models.CheckConstraint(
                        condition=~models.Q(text__regex=r"^\s*$"),
                        name="remark_has_text",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(kind="answer", answers__isnull=False)
                        | (~models.Q(kind="answer") & models.Q(answers__isnull=True)),
                        name="remark_answers_iff_answer",
                    ),
                    models.CheckConstraint(
                        condition=(models.Q(kind="question") & ~models.Q(asked_of=""))
                        | (~models.Q(kind="question") & models.Q(asked_of="")),
                        name="remark_asked_of_iff_question",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "request",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="claim",
                        serialize=False,
                        to="approvals.approvalrequest",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("until", models.DateTimeField(help_text="it lapses then by itself")),
                (
                    "principal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.principal"
                    ),
                ),
            ],
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[("asked", "You are asked"), ("outcome", "What became of it"), ("talk", "Somebody wrote")],
                max_length=8,
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE approvals_remark ADD CONSTRAINT remark_not_too_long CHECK (char_length(text) <= 4000)",
            migrations.RunSQL.noop,
        ),
        db.grant("approvals_remark", rights="SELECT, INSERT"),
        db.grant("approvals_claim", rights="SELECT, INSERT, UPDATE (principal_id, at, until)"),
    ]
