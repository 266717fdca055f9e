"""Open requests that ask for exactly the same are counted on the page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0009_talk")]

    operations = [
        migrations.AddIndex(
            model_name="approvalrequest",
            index=models.Index(
                fields=["action_digest"], name="request_open_same", condition=models.Q(state="open")
            ),
        ),
    ]
