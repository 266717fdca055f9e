"""Proposals are found by their tool, of which most are rare."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0007_terms'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='proposal',
            index=models.Index(fields=['tool'], name='proposal_tool'),
        ),
    ]
