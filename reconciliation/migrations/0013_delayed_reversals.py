"""What fails about a reversal is kept with it, and what could not be undone is a case."""

from django.db import migrations, models

from runs import db

KINDS = [
    ("not_confirmed", "Not confirmed"),
    ("different", "Recorded differently"),
    ("duplicate", "Recorded more than once"),
    ("doubted", "Our record is doubted"),
    ("not_undone", "To be undone, and could not be"),
]


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0012_standing_use")]

    operations = [
        migrations.AddField(
            model_name="reversal",
            name="tries",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="that failed, of what is due, in a row"
            ),
        ),
        migrations.AddField(
            model_name="reversal",
            name="problem",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="why the last of them failed"
            ),
        ),
        migrations.AlterField(
            model_name="case", name="kind", field=models.CharField(choices=KINDS, max_length=16)
        ),
        db.grant_also("reconciliation_reversal", columns="tries, problem"),
    ]
