"""What a yes takes beyond the click, frozen with the request; a yes that came without it is never stored."""

from django.db import migrations, models

CONFIRMED = """
CREATE FUNCTION approvals_vote_confirmed() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.choice = 'approve' AND NEW.confirmed IS DISTINCT FROM
      (SELECT confirm FROM approvals_approvalrequest WHERE id = NEW.request_id) THEN
    RAISE EXCEPTION 'a yes without what its request takes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0006_told")]

    operations = [
        migrations.AddField(
            model_name="approvalrequest",
            name="confirm",
            field=models.CharField(
                max_length=14,
                default="click",
                db_default="click",
                help_text="what a yes takes: click, retype, reauthenticate",
            ),
        ),
        migrations.AddField(
            model_name="vote",
            name="confirmed",
            field=models.CharField(
                max_length=14,
                default="click",
                db_default="click",
                help_text="what the yes came with, as the request takes it",
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                name="request_confirm_known",
                condition=models.Q(confirm__in=["click", "retype", "reauthenticate"]),
            ),
        ),
        migrations.RunSQL(
            [
                CONFIRMED,
                "CREATE TRIGGER approvals_vote_confirmed BEFORE INSERT ON approvals_vote FOR EACH ROW"
                " EXECUTE FUNCTION approvals_vote_confirmed()",
            ],
            migrations.RunSQL.noop,
        ),
    ]
