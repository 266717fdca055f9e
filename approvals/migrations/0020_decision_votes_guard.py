"""The database holds that a decision's votes are its own and enough."""

from django.db import migrations

from runs import db


class Migration(migrations.Migration):
    dependencies = [("approvals", "0019_decision_votes")]

    operations = [db.script(__file__, "decision_votes.sql")]
