"""A decision keeps which votes made it: what others had said before they lost the right is no part of it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_guards")]

    operations = [
        migrations.AddField(
            model_name="decision",
            name="votes",
            field=models.JSONField(
                default=list,
                db_default=models.Value([], models.JSONField()),
                help_text="the ids of the votes that made it; none where no people decided, or before that was kept",
            ),
        ),
    ]
