"""A case that a statement opened says of what kind the difference is."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0015_stopped_statements'),
    ]

    operations = [
        migrations.AlterField(
            model_name='case',
            name='kind',
            field=models.CharField(choices=[('not_confirmed', 'Not confirmed'), ('different', 'Recorded differently'), ('other_amount', 'Another amount recorded'), ('other_account', 'On another account'), ('duplicate', 'Recorded more than once'), ('missing_there', 'Here, and not there'), ('missing_here', 'There, and not here'), ('doubted', 'Our record is doubted'), ('not_undone', 'To be undone, and could not be')], max_length=16),
        ),
    ]
