"""What was done is undone by an operation of its own, in a run of its own; the database holds that it is so, and once."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import runs.ids
from runs import db


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0006_told"),
        ("reconciliation", "0010_case_notices"),
        ("runs", "0006_batch_tries"),
    ]

    operations = [
        migrations.CreateModel(
            name="Reversal",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                (
                    "reference",
                    models.CharField(help_text="which of the other side's records is undone", max_length=200),
                ),
                ("effect", models.JSONField(help_text="of the tool that undoes, as its declaration worked it out")),
                ("tool", models.CharField(max_length=80)),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("operator", "An operator"),
                            ("case", "A case"),
                            ("cancelled", "A cancelled run"),
                            ("failed", "A failed run"),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField()),
                (
                    "due_at",
                    models.DateTimeField(blank=True, help_text="something is to be done about it", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "result",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("done", "Reversed"),
                            ("rejected", "Rejected"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Not reversed"),
                            ("dropped", "Not proposed"),
                        ],
                        max_length=10,
                    ),
                ),
                ("what", models.TextField(blank=True, help_text="what came of it, in a sentence")),
                (
                    "after",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="then",
                        to="reconciliation.reversal",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversals",
                        to="reconciliation.case",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversals",
                        to="reconciliation.operation",
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.principal"
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversal",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="reversal_due"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("operation",),
                        name="reversal_one_living",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("result", "")),
                            models.Q(("ended_at__isnull", False), models.Q(("result", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="reversal_ended_iff_result",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="operation",
            name="reverses",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reversed_by",
                to="reconciliation.operation",
            ),
        ),
        migrations.AddField(
            model_name="operation",
            name="other_reversed",
            field=models.BooleanField(db_default=False, default=False, help_text="the second record of two"),
        ),
        migrations.AddField(
            model_name="operation",
            name="reverses_reference",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("reverses__isnull", False),
                    ("state__in", ("authorised", "sending", "unknown", "accepted", "succeeded", "compensated")),
                ),
                fields=("reverses", "reverses_reference"),
                name="operation_reversed_once",
            ),
        ),
        db.edges_also(machine="operation", pairs=[("succeeded", "compensated")]),
        migrations.RunSQL(
            [
                # a reversal undoes what stands, was proposed, and is no reversal itself
                "CREATE FUNCTION reconciliation_reverses_what_stands() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " IF NOT EXISTS (SELECT FROM reconciliation_operation o JOIN reconciliation_reversal r"
                "     ON r.operation_id = o.id WHERE o.id = NEW.reverses_id AND o.state = 'succeeded'"
                "     AND o.reverses_id IS NULL AND r.run_id = NEW.run_id AND r.ended_at IS NULL"
                "     AND r.reference = NEW.reverses_reference) THEN"
                "  RAISE EXCEPTION 'no reversal of this was proposed, or it does not stand'"
                "   USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW; END $fn$",
                "CREATE TRIGGER reconciliation_reverses_what_stands BEFORE INSERT ON reconciliation_operation"
                " FOR EACH ROW WHEN (NEW.reverses_id IS NOT NULL)"
                " EXECUTE FUNCTION reconciliation_reverses_what_stands()",
                # compensated says that a reversal of this very record succeeded, and nothing else can
                "CREATE FUNCTION reconciliation_compensated_by() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " IF NOT EXISTS (SELECT FROM reconciliation_operation r WHERE r.reverses_id = NEW.id"
                "     AND r.reverses_reference = NEW.external_reference AND r.state = 'succeeded') THEN"
                "  RAISE EXCEPTION 'no reversal of this has succeeded'"
                "   USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW; END $fn$",
                "CREATE TRIGGER reconciliation_compensated_by BEFORE UPDATE OF state ON reconciliation_operation"
                " FOR EACH ROW WHEN (NEW.state = 'compensated' AND OLD.state <> 'compensated')"
                " EXECUTE FUNCTION reconciliation_compensated_by()",
                # whichever code settles a reversal or ends its run, somebody looks what follows from it
                "CREATE FUNCTION reconciliation_reversal_due() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " UPDATE reconciliation_reversal SET due_at = clock_timestamp() WHERE ended_at IS NULL AND run_id ="
                "  CASE TG_TABLE_NAME WHEN 'runs_run' THEN (to_jsonb(NEW) ->> 'id')::uuid"
                "   ELSE (to_jsonb(NEW) ->> 'run_id')::uuid END;"
                " RETURN NULL; END $fn$",
                "CREATE TRIGGER reconciliation_reversal_settled AFTER UPDATE OF state ON reconciliation_operation"
                " FOR EACH ROW WHEN (NEW.reverses_id IS NOT NULL AND NEW.state IN ('succeeded', 'failed')"
                " AND OLD.state <> NEW.state) EXECUTE FUNCTION reconciliation_reversal_due()",
                "CREATE TRIGGER reconciliation_reversal_over AFTER UPDATE OF state ON runs_run FOR EACH ROW"
                " WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND NEW.workflow = 'reversal')"
                " EXECUTE FUNCTION reconciliation_reversal_due()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant_also("reconciliation_operation", columns="other_reversed"),
        db.closed_once(table="reconciliation_reversal", column="ended_at"),
        db.grant(
            "reconciliation_reversal", rights="SELECT, INSERT, UPDATE (run_id, due_at, ended_at, result, what)"
        ),
    ]
