"""Runs of a batch that somebody else had locked: how often, and when they are tried again."""

from django.db import migrations, models

from runs import db


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0005_operator'),
    ]

    operations = [
        migrations.AddField(
            model_name='batchitem',
            name='tries',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, help_text='how often somebody had it locked'),
        ),
        migrations.AddField(
            model_name='batchitem',
            name='try_after',
            field=models.DateTimeField(blank=True, help_text='when it is tried again after that', null=True),
        ),
        db.grant_also("runs_batchitem", columns="tries, try_after"),
    ]
