"""What was to be undone after the second record of two comes after the first one now."""

from django.db import migrations

from runs import db


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0016_kinds_of_difference")]

    operations = [db.grant_also("reconciliation_reversal", columns="after_id")]
