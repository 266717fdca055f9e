"""What all workers know together: which dependency answers and when it may be called, and who holds which resource."""

import django.db.models.deletion
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="turn_at",
            field=models.DateTimeField(blank=True, help_text="its place in the line at a limited tool", null=True),
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                (
                    "failures",
                    models.PositiveIntegerField(db_default=0, default=0, help_text="of the system itself, in a row"),
                ),
                ("last_failure", models.TextField(blank=True, db_default="", default="")),
                ("last_failure_at", models.DateTimeField(blank=True, null=True)),
                (
                    "open_since",
                    models.DateTimeField(blank=True, help_text="since when nothing is called but trials", null=True),
                ),
                (
                    "ask_at",
                    models.DateTimeField(
                        blank=True, help_text="when one call may try whether it answers again", null=True
                    ),
                ),
                (
                    "trial_until",
                    models.DateTimeField(blank=True, help_text="one call is trying; lapses with its worker", null=True),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        blank=True, help_text="the other side asked to be left alone until", null=True
                    ),
                ),
                (
                    "free_at",
                    models.DateTimeField(blank=True, help_text="when the next evenly spaced call is due", null=True),
                ),
                (
                    "line_at",
                    models.DateTimeField(blank=True, help_text="the end of the line of those that wait", null=True),
                ),
            ],
            options={
                "verbose_name_plural": "dependencies",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("open_since__isnull", True), ("trial_until__isnull", True)),
                            models.Q(("ask_at__isnull", False), ("open_since__isnull", False)),
                            _connector="OR",
                        ),
                        name="dependency_open_says_when",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResourceHold",
            fields=[
                ("name", models.CharField(max_length=250, primary_key=True, serialize=False)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="reconciliation.operation",
                    ),
                ),
            ],
        ),
        # whoever settles an operation, or takes it back unsent, lets go of what it held: nobody can forget it, and
        # nobody can do it while the operation is in flight, for the application's role deletes nothing itself
        migrations.RunSQL(
            [
                "CREATE FUNCTION reconciliation_let_go() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
                " SET search_path = public AS $fn$ BEGIN"
                " DELETE FROM reconciliation_resourcehold WHERE operation_id = NEW.id; RETURN NULL; END $fn$",
                "CREATE FUNCTION reconciliation_give_back(unsent uuid) RETURNS void LANGUAGE sql SECURITY DEFINER"
                " SET search_path = public AS $fn$"
                " DELETE FROM reconciliation_resourcehold h WHERE h.operation_id = unsent AND NOT EXISTS ("
                "  SELECT FROM reconciliation_operation o WHERE o.id = unsent"
                "   AND o.state IN ('sending', 'unknown', 'accepted')) $fn$",
                "CREATE TRIGGER reconciliation_let_go AFTER UPDATE OF state ON reconciliation_operation FOR EACH ROW"
                " WHEN (OLD.state IN ('sending', 'unknown', 'accepted')"
                "   AND NEW.state NOT IN ('sending', 'unknown', 'accepted'))"
                " EXECUTE FUNCTION reconciliation_let_go()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant_also("reconciliation_operation", columns="turn_at"),
        db.grant("reconciliation_resourcehold", rights="SELECT, INSERT"),
        db.grant(
            "reconciliation_dependency",
            rights="SELECT, INSERT, UPDATE (failures, last_failure, last_failure_at, open_since, ask_at, trial_until,"
            " not_before, free_at, line_at)",
        ),
    ]
