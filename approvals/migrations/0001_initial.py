from django.conf import settings
from django.db import migrations

from approvals.migrations.tables import people, policies, requests, told
from runs import db


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("runs", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        db.CreateTables([*policies.TABLES, *requests.TABLES, *people.TABLES, *told.TABLES]),
        db.script(__file__, "indexes.sql"),
    ]
