"""A wrong verdict is put right by a new entry, and what is settled changes by nothing else."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from runs import db

STATES = [
    ("authorised", "Waiting to run"),
    ("sending", "Running"),
    ("succeeded", "Completed"),
    ("failed", "Failed"),
    ("accepted", "Accepted, not final"),
    ("unknown", "Not confirmed"),
    ("abandoned", "Given up"),
    ("compensated", "Reversed"),
]

VERDICTS = [
    ("happened", "It happened"),
    ("differently", "It happened differently"),
    ("did_not", "It did not happen"),
    ("twice", "It happened twice"),
    ("noted", "Noted; put right outside"),
    ("stands", "Our record is right"),
    ("by_probe", "Settled by asking"),
]

# a reversal moves a settled operation on and leaves what was recorded of it as it is
ONLY_BY_ENTRY = """
CREATE FUNCTION reconciliation_only_by_entry() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN
  IF NEW.corrected <> OLD.corrected + 1 OR NOT EXISTS (
    SELECT FROM reconciliation_correction c WHERE c.operation_id = NEW.id AND c.number = NEW.corrected
      AND c.source = OLD.state AND c.target = NEW.state
  ) THEN
    RAISE EXCEPTION 'what is settled is put right by a correction only' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$
"""
GUARD = """
CREATE TRIGGER reconciliation_only_by_entry BEFORE UPDATE ON reconciliation_operation FOR EACH ROW
  WHEN (OLD.state IN ('succeeded', 'failed') AND NEW.state IN ('succeeded', 'failed') AND (
    (OLD.state, OLD.external_reference, OLD.actual, OLD.settled_by, OLD.failure, OLD.failure_code, OLD.settled_at,
     OLD.corrected)
    IS DISTINCT FROM
    (NEW.state, NEW.external_reference, NEW.actual, NEW.settled_by, NEW.failure, NEW.failure_code, NEW.settled_at,
     NEW.corrected)))
  EXECUTE FUNCTION reconciliation_only_by_entry()
"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0008_disputed_key"), ("runs", "0002_guards")]

    operations = [
        migrations.AddField("operation", "corrected", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("operation", "corrected_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("theirname", "given_up", models.BooleanField(db_default=False, default=False)),
        migrations.RemoveConstraint("theirname", "their_name_once"),
        migrations.AddConstraint(
            "theirname",
            models.UniqueConstraint(
                condition=models.Q(("given_up", False)), fields=("system", "name"), name="their_name_once"
            ),
        ),
        migrations.AlterField(
            "case",
            "kind",
            models.CharField(
                choices=[
                    ("not_confirmed", "Not confirmed"),
                    ("different", "Recorded differently"),
                    ("duplicate", "Recorded more than once"),
                    ("doubted", "Our record is doubted"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField("case", "verdict", models.CharField(blank=True, choices=VERDICTS, max_length=12)),
        migrations.AlterField("proposedverdict", "verdict", models.CharField(choices=VERDICTS, max_length=12)),
        migrations.CreateModel(
            name="Correction",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField(help_text="counted from 1 for each operation")),
                ("source", models.CharField(choices=STATES, max_length=12)),
                ("target", models.CharField(choices=STATES, max_length=12)),
                ("before", models.JSONField(help_text="what our record said until then")),
                ("evidence", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "case",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="correction",
                        to="reconciliation.case",
                    ),
                ),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.principal",
                    ),
                ),
                (
                    "corrected_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="runs.principal"
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="corrections",
                        to="reconciliation.operation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "number"), name="correction_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(("source__in", ("succeeded", "failed")), ("target__in", ("succeeded", "failed"))),
                        name="correction_of_settled",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confirmed_by__isnull", True),
                            models.Q(("confirmed_by", models.F("corrected_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="correction_confirmed_by_another",
                    ),
                ],
            },
        ),
        db.edges_also(machine="operation", pairs=[("succeeded", "failed"), ("failed", "succeeded")]),
        migrations.RunSQL([ONLY_BY_ENTRY, GUARD], migrations.RunSQL.noop),
        db.grant("reconciliation_correction", rights="SELECT, INSERT"),
        db.grant_also("reconciliation_operation", columns="corrected, corrected_at"),
        db.grant_also("reconciliation_theirname", columns="given_up"),
    ]
