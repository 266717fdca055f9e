"""What runs wait for, and what the application's role may never do to it."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.models import Q

import runs.ids
from runs import db

RESULTS = [
    ("passed", "The time has passed"),
    ("came", "The event came"),
    ("ended", "The other run ended"),
    ("late", "It was not there in time"),
    ("dropped", "The run no longer waited for it"),
]


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_waits_on")]

    operations = [
        migrations.CreateModel(
            name="Wait",
            fields=[
                ("id", models.UUIDField(default=runs.ids.new_id, editable=False, primary_key=True, serialize=False)),
                (
                    "key",
                    models.CharField(
                        help_text="the workflow's own name for it: a run waits once for each", max_length=40
                    ),
                ),
                (
                    "kind",
                    models.CharField(choices=[("timer", "Timer"), ("event", "Event"), ("run", "Run")], max_length=10),
                ),
                ("event", models.CharField(blank=True, help_text="the event's name, for events", max_length=60)),
                (
                    "starts",
                    models.JSONField(
                        blank=True, help_text="workflow and input of the run to start and wait for", null=True
                    ),
                ),
                (
                    "due_at",
                    models.DateTimeField(blank=True, help_text="when the timer, or the patience, is over", null=True),
                ),
                ("began_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("result", models.CharField(blank=True, choices=RESULTS, max_length=10)),
                (
                    "content",
                    models.JSONField(default=dict, help_text="what came of it, as the workflow is shown it"),
                ),
                (
                    "other",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="awaited_by",
                        to="runs.run",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="waits", to="runs.run"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(condition=Q(ended_at__isnull=True), fields=["other"], name="wait_for_run")],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "key"), name="wait_once"),
                    models.UniqueConstraint(condition=Q(ended_at__isnull=True), fields=("run",), name="wait_one_open"),
                    models.CheckConstraint(
                        condition=Q(ended_at__isnull=True, result="") | (Q(ended_at__isnull=False) & ~Q(result="")),
                        name="wait_ended_iff_result",
                    ),
                    models.CheckConstraint(
                        condition=Q(kind="timer", due_at__isnull=False)
                        | (Q(kind="event") & ~Q(event=""))
                        | (Q(kind="run") & (Q(other__isnull=False) | Q(starts__isnull=False))),
                        name="wait_for_something",
                    ),
                ],
            },
        ),
        # what came of a wait stays, and the run that was started for it is the one for good
        migrations.RunSQL(
            [
                "CREATE FUNCTION runs_wait_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$ BEGIN"
                " IF OLD.result NOT IN ('', 'dropped') OR NEW.other_id IS DISTINCT FROM OLD.other_id"
                "   AND OLD.other_id IS NOT NULL THEN"
                "  RAISE EXCEPTION 'a wait that has ended, and the run it is for, stay as they are'"
                "   USING ERRCODE = 'restrict_violation';"
                " END IF; RETURN NEW; END $fn$",
                "CREATE TRIGGER runs_wait_stays BEFORE UPDATE ON runs_wait FOR EACH ROW"
                " EXECUTE FUNCTION runs_wait_stays()",
            ],
            migrations.RunSQL.noop,
        ),
        db.grant("runs_wait", rights="SELECT, INSERT, UPDATE (other_id, ended_at, result, content)"),
    ]
