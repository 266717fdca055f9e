"""A statement can be stopped, and continued. Only a list that was read to its end says that something is missing."""

import django.db.models.deletion
from django.db import migrations, models

from runs.db import grant_also

WHOLE = """
CREATE FUNCTION reconciliation_missing_from_whole() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM reconciliation_statement s WHERE s.number = NEW.statement_id AND s.read_at IS NOT NULL) THEN
    RAISE EXCEPTION 'only a statement that was read to its end says that something is missing'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0014_done_anew'),
        ('runs', '0007_terms'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='statement',
            name='statement_due_until_finished',
        ),
        migrations.AddField(
            model_name='statement',
            name='stopped_at',
            field=models.DateTimeField(blank=True, help_text='it is left as it is until it is continued', null=True),
        ),
        migrations.AddField(
            model_name='statement',
            name='stopped_because',
            field=models.TextField(blank=True, help_text='why it was stopped last, as whoever did it gave it'),
        ),
        migrations.AddField(
            model_name='statement',
            name='stopped_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.principal'),
        ),
        migrations.AddConstraint(
            model_name='statement',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('due_at__isnull', True), ('finished_at__isnull', False)), models.Q(('due_at__isnull', False), ('finished_at__isnull', True)), models.Q(('due_at__isnull', True), ('stopped_at__isnull', False)), models.Q(('columns__isnull', True), ('due_at__isnull', True), ('source', 'file')), _connector='OR'), name='statement_due_until_finished'),
        ),
        migrations.AddConstraint(
            model_name='statement',
            constraint=models.CheckConstraint(condition=models.Q(('stopped_at__isnull', True), models.Q(('due_at__isnull', True), ('finished_at__isnull', True), ('stopped_by__isnull', False), models.Q(('stopped_because', ''), _negated=True)), _connector='OR'), name='statement_stopped_for_a_reason'),
        ),
        grant_also("reconciliation_statement", columns="stopped_at, stopped_by_id, stopped_because"),
        migrations.RunSQL(
            [
                WHOLE,
                "CREATE TRIGGER reconciliation_missing_from_whole BEFORE INSERT ON reconciliation_statementours"
                " FOR EACH ROW WHEN (NEW.result = 'missing') EXECUTE FUNCTION reconciliation_missing_from_whole()",
            ],
            migrations.RunSQL.noop,
        ),
    ]
