"""What a run waits for may be shared with others: which dependency, or which resource."""

from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="waits_on",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="the shared thing it waits for, by its key",
                max_length=300,
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("waits_on", ""), _negated=True), fields=["waits_on"], name="run_waits_on"
            ),
        ),
        db.grant_also("runs_run", columns="waits_on"),
    ]
