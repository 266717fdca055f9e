"""Whoever may settle cases is told of new ones, and of those that stay open."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0009_corrections"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CaseNotice",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("stage", models.CharField(choices=[("new", "New"), ("ageing", "Still open")], max_length=8)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("due_at", models.DateTimeField(help_text="when it is sent, or tried again")),
                ("tries", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "result",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("sent", "Sent"),
                            ("not_needed", "Not Needed"),
                            ("not_wanted", "Not Wanted"),
                            ("no_address", "No Address"),
                            ("given_up", "Given Up"),
                        ],
                        db_default="",
                        max_length=12,
                    ),
                ),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notices",
                        to="reconciliation.case",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["due_at"], name="case_notice_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("case", "recipient", "stage"), name="case_notice_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("result", "")),
                            models.Q(models.Q(("result", ""), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="case_notice_ended_iff_result",
                    ),
                ],
            },
        ),
        db.grant("reconciliation_casenotice", rights="SELECT, INSERT, UPDATE (due_at, tries, result, ended_at)"),
    ]
