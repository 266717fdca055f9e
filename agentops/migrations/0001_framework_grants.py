"""The application's rights on the framework's own tables (accounts, sessions), which hold nothing append-only."""

from django.db import migrations

from runs import db


class Migration(migrations.Migration):
    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("approvals", "0002_guards"),
        ("reconciliation", "0002_guards"),
    ]

    operations = [db.grant_framework()]
