"""A record on the other side settles one operation, by whichever of its names."""

import django.db.models.deletion
from django.db import migrations, models

from runs import db

# what has been settled so far, by the names that are known of it
KNOWN = """
INSERT INTO reconciliation_theirname (system, name, operation_id)
SELECT system, name, id FROM (
  SELECT system, external_reference AS name, id, 1 AS place FROM reconciliation_operation
  UNION SELECT system, actual->>'id', id, 2 FROM reconciliation_operation
    WHERE system = 'billing' AND state = 'succeeded' AND settled_by <> 'person'
  UNION SELECT system, actual->>'other_reference', id, 3 FROM reconciliation_operation WHERE settled_by = 'person'
) AS known WHERE name <> '' ORDER BY place
ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0003_limits")]

    operations = [
        migrations.CreateModel(
            name="TheirName",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("system", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=200)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="their_names",
                        to="reconciliation.operation",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("system", "name"), name="their_name_once")],
            },
        ),
        db.grant("reconciliation_theirname", rights="SELECT, INSERT"),
        migrations.RunSQL(KNOWN, migrations.RunSQL.noop),
    ]
