"""What lists of requests are searched and ordered by, on the request itself, so that an index can find it."""

from django.db import migrations, models

# what a request is about never changes, so it is copied once, by whichever code writes the request
COPY = """
CREATE FUNCTION approvals_request_about() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT p.amount_minor, coalesce(p.currency, '') INTO NEW.amount_minor, NEW.currency
    FROM runs_proposal p WHERE p.id = NEW.proposal_id;
  SELECT concat_ws(E'\\n', r.customer, r.subject, NEW.ask) INTO NEW.words FROM runs_run r WHERE r.id = NEW.run_id;
  RETURN NEW;
END $$;
CREATE TRIGGER approvals_request_about BEFORE INSERT ON approvals_approvalrequest
  FOR EACH ROW EXECUTE FUNCTION approvals_request_about();
UPDATE approvals_approvalrequest a
  SET amount_minor = p.amount_minor, currency = coalesce(p.currency, ''), words = concat_ws(E'\\n', r.customer, r.subject, a.ask)
  FROM runs_proposal p, runs_run r WHERE p.id = a.proposal_id AND r.id = a.run_id;
"""
INDEXES = """
CREATE INDEX request_words ON approvals_approvalrequest USING gin (upper(words) gin_trgm_ops);
CREATE INDEX request_rules ON approvals_approvalrequest USING gin (rules jsonb_path_ops);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0015_tally'),
        ('runs', '0007_terms'),
    ]

    operations = [
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS pg_trgm", migrations.RunSQL.noop),
        migrations.AddField(
            model_name='approvalrequest',
            name='amount_minor',
            field=models.BigIntegerField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='currency',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=3),
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='words',
            field=models.TextField(blank=True, db_default='', default='', editable=False, help_text='what it is searched by: customer, subject, sentence'),
        ),
        migrations.RunSQL(COPY, migrations.RunSQL.noop),
        migrations.RunSQL(INDEXES, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='approvalrequest',
            index=models.Index(condition=models.Q(('state', 'open')), fields=['currency', 'amount_minor', 'id'], name='request_open_amount'),
        ),
        migrations.AddIndex(
            model_name='approvalrequest',
            index=models.Index(fields=['currency', 'amount_minor', 'id'], name='request_amount'),
        ),
    ]
