"""What narrows a run's capabilities, fixed when it starts."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0006_batch_tries'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='terms',
            field=models.JSONField(default=dict, help_text='by tool, what narrows it: only, when, until; fixed at the start'),
        ),
    ]
