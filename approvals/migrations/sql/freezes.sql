-- A sender's look and a freezer's act meet at one advisory lock, which is given in the order of asking: many senders
-- one after the other never keep a freeze waiting. Each statement of the function sees what is committed once the lock
-- is held.
CREATE FUNCTION approvals_freezes_in_force() RETURNS SETOF text LANGUAGE plpgsql VOLATILE AS $fn$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7305511224);
  RETURN QUERY SELECT scope::text FROM approvals_freeze WHERE lifted_at IS NULL;
END $fn$;

CREATE FUNCTION approvals_freeze_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF OLD.lifted_at IS NOT NULL AND (NEW.lifted_at, NEW.lifted_by_id, NEW.lift_reason)
      IS DISTINCT FROM (OLD.lifted_at, OLD.lifted_by_id, OLD.lift_reason) THEN
    RAISE EXCEPTION 'a lifted freeze stays lifted' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_freeze_stays BEFORE UPDATE ON approvals_freeze
  FOR EACH ROW EXECUTE FUNCTION approvals_freeze_stays();

-- What was asked stays as it was asked; only its clock may have been stopped, while it was open. The tables' owner, who
-- may do anything, is not held by this.
CREATE FUNCTION approvals_deadline_only_later() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.respond_by <> OLD.respond_by
      AND NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE')
      AND (OLD.state <> 'open' OR NEW.respond_by < OLD.respond_by
      OR NEW.respond_by > NEW.valid_until OR NEW.respond_by - OLD.respond_by <> NEW.stopped_for - OLD.stopped_for) THEN
    RAISE EXCEPTION 'a deadline only moves on, by the time it was stopped' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_deadline_only_later BEFORE UPDATE OF respond_by ON approvals_approvalrequest
  FOR EACH ROW EXECUTE FUNCTION approvals_deadline_only_later();
