-- A decision of people names the votes that made it: its own request's, with what was decided, enough for each stage.
CREATE OR REPLACE FUNCTION approvals_decision_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
DECLARE
  said text := CASE WHEN NEW.approved THEN 'approve' ELSE 'reject' END;
BEGIN
  IF NEW.kind <> 'people' AND NEW.votes = '[]' THEN
    RETURN NEW;
  END IF;
  IF NEW.kind <> 'people' OR EXISTS (
    SELECT FROM jsonb_array_elements_text(NEW.votes) AS one (id) WHERE one.id NOT IN (
      SELECT v.id::text FROM approvals_vote v WHERE v.request_id = NEW.request_id AND v.choice = said)
  ) THEN
    RAISE EXCEPTION 'a vote that is none of this decision' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.approved AND (
    NOT EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id)
    OR EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.quorum >
      (SELECT count(DISTINCT COALESCE(v.instead_of_id, v.principal_id)) FROM approvals_vote v
        WHERE v.stage_id = s.id AND v.choice = said AND NEW.votes ? v.id::text))
  ) THEN
    RAISE EXCEPTION 'a stage has not got its people' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.approved AND NOT EXISTS (
    SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.reject_at <=
      (SELECT count(*) FROM approvals_vote v WHERE v.stage_id = s.id AND v.choice = said AND NEW.votes ? v.id::text)
  ) THEN
    RAISE EXCEPTION 'not enough people have said no' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
