"""A settled operation may have to be looked up once more; a process recorded as ended may register anew."""

import django_fsm
from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0005_second_person")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="look_wanted_at",
            field=models.DateTimeField(
                blank=True, help_text="told of something: it is looked up by a question put after this", null=True
            ),
        ),
        migrations.AlterField(
            model_name="operation",
            name="state",
            field=django_fsm.FSMField(
                choices=[
                    ("authorised", "Waiting to run"),
                    ("sending", "Running"),
                    ("succeeded", "Completed"),
                    ("failed", "Failed"),
                    ("accepted", "Accepted, not final"),
                    ("unknown", "Not confirmed"),
                    ("abandoned", "Given up"),
                    ("compensated", "Reversed"),
                ],
                default="authorised",
                max_length=12,
            ),
        ),
        migrations.RemoveConstraint(model_name="workerprocess", name="worker_process_once"),
        migrations.AddConstraint(
            model_name="workerprocess",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("boot", "pid", "start_ticks"),
                name="worker_process_once",
            ),
        ),
        db.grant_also("reconciliation_operation", columns="look_wanted_at"),
    ]
