from django.conf import settings
from django.db import migrations

from reconciliation.migrations.tables import cases, operations, statements
from runs import db


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("runs", "0001_initial"),
        ("approvals", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [db.CreateTables([*operations.TABLES, *cases.TABLES, *statements.TABLES])]
