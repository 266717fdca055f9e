-- Every stage has its own distinct people before there is a yes, whatever the application believes.
CREATE FUNCTION approvals_yes_in(stage uuid) RETURNS bigint LANGUAGE sql STABLE AS $fn$
  SELECT count(DISTINCT COALESCE(v.instead_of_id, v.principal_id)) FROM approvals_vote v
    WHERE v.stage_id = stage AND v.choice = 'approve'
$fn$;

CREATE FUNCTION approvals_stage_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF TG_OP = 'UPDATE' AND OLD.opened_at IS NOT NULL AND NEW.opened_at IS DISTINCT FROM OLD.opened_at THEN
    RAISE EXCEPTION 'a stage is opened once' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.in_turn AND NEW.opened_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.opened_at IS NULL) AND EXISTS (
    SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.position < NEW.position
      AND approvals_yes_in(s.id) < s.quorum
  ) THEN
    RAISE EXCEPTION 'this stage waits for those before it' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.met_at IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.met_at IS NULL) AND approvals_yes_in(NEW.id) < NEW.quorum THEN
    RAISE EXCEPTION 'this stage has not got its people' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.also <@ (SELECT COALESCE(jsonb_agg(p."group"), '[]') FROM approvals_prompt p
      WHERE p.request_id = NEW.request_id AND p.kind = 'escalate') THEN
    RAISE EXCEPTION 'the rule names no such escalation' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_stage_guard BEFORE INSERT OR UPDATE ON approvals_stage
  FOR EACH ROW EXECUTE FUNCTION approvals_stage_guard();

-- one person, one answer in one stage: whoever stood in for somebody, and that somebody, are one
CREATE FUNCTION approvals_vote_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM approvals_stage s WHERE s.id = NEW.stage_id AND s.request_id = NEW.request_id
      AND s.opened_at IS NOT NULL AND s.met_at IS NULL) THEN
    RAISE EXCEPTION 'this stage is not asked' USING ERRCODE = 'restrict_violation';
  END IF;
  IF EXISTS (SELECT FROM approvals_vote v WHERE v.request_id = NEW.request_id
      AND (v.instead_of_id = NEW.principal_id OR v.principal_id = NEW.instead_of_id)) THEN
    RAISE EXCEPTION 'a stand-in and whom they stand in for are one' USING ERRCODE = 'unique_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_vote_guard BEFORE INSERT ON approvals_vote
  FOR EACH ROW EXECUTE FUNCTION approvals_vote_guard();

-- a yes that came without what its request takes beyond the click is never stored
CREATE FUNCTION approvals_vote_confirmed() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.choice = 'approve' AND NEW.confirmed IS DISTINCT FROM
      (SELECT confirm FROM approvals_approvalrequest WHERE id = NEW.request_id) THEN
    RAISE EXCEPTION 'a yes without what its request takes' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_vote_confirmed BEFORE INSERT ON approvals_vote
  FOR EACH ROW EXECUTE FUNCTION approvals_vote_confirmed();

CREATE FUNCTION approvals_decision_guard() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.kind <> 'people' THEN
    RETURN NEW;
  END IF;
  IF NEW.approved AND (
    NOT EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id)
    OR EXISTS (SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND approvals_yes_in(s.id) < s.quorum)
  ) THEN
    RAISE EXCEPTION 'a stage has not got its people' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT NEW.approved AND NOT EXISTS (
    SELECT FROM approvals_stage s WHERE s.request_id = NEW.request_id AND s.reject_at <=
      (SELECT count(*) FROM approvals_vote v WHERE v.stage_id = s.id AND v.choice = 'reject')
  ) THEN
    RAISE EXCEPTION 'not enough people have said no' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_decision_guard BEFORE INSERT ON approvals_decision
  FOR EACH ROW EXECUTE FUNCTION approvals_decision_guard();

-- a decision rests on a standing approval only while that is in force, for its tool and currency, and up to its amount
CREATE FUNCTION approvals_standing_covers() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM approvals_standingapproval s JOIN runs_proposal p ON p.id = NEW.proposal_id
      WHERE s.id = NEW.standing_id AND s.state = 'in_force' AND s.tool = p.tool AND s.currency = p.currency
      AND p.amount_minor <= s.each_minor AND NEW.decided_at >= s.starts_at AND NEW.decided_at < s.ends_at
      AND NEW.valid_until <= s.ends_at) THEN
    RAISE EXCEPTION 'no standing approval in force covers this' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_standing_covers BEFORE INSERT ON approvals_decision
  FOR EACH ROW WHEN (NEW.kind = 'standing') EXECUTE FUNCTION approvals_standing_covers();
