-- nobody ends a run, or takes it away from settling, while something it sent may or may not have happened
CREATE FUNCTION reconciliation_settle_first() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.state <> OLD.state
      AND NEW.state IN ('completed', 'rejected', 'cancelled', 'failed', 'needs_person', 'gathering')
      AND EXISTS (SELECT FROM reconciliation_operation o WHERE o.run_id = NEW.id
        AND o.state IN ('sending', 'unknown', 'accepted')) THEN
    RAISE EXCEPTION 'an operation of this run is not settled' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_settle_first BEFORE UPDATE OF state ON runs_run
  FOR EACH ROW EXECUTE FUNCTION reconciliation_settle_first();

-- Whoever settles an operation, or takes it back unsent, lets go of what it held: nobody can forget it, and nobody can
-- do it while the operation is in flight, for the application's role deletes nothing itself.
CREATE FUNCTION reconciliation_let_go() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
AS $fn$
BEGIN
  DELETE FROM reconciliation_resourcehold WHERE operation_id = NEW.id;
  RETURN NULL;
END $fn$;
CREATE TRIGGER reconciliation_let_go AFTER UPDATE OF state ON reconciliation_operation
  FOR EACH ROW WHEN (OLD.state IN ('sending', 'unknown', 'accepted')
    AND NEW.state NOT IN ('sending', 'unknown', 'accepted'))
  EXECUTE FUNCTION reconciliation_let_go();

CREATE FUNCTION reconciliation_give_back(unsent uuid) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = public
AS $fn$
  DELETE FROM reconciliation_resourcehold h WHERE h.operation_id = unsent AND NOT EXISTS (
    SELECT FROM reconciliation_operation o WHERE o.id = unsent
      AND o.state IN ('sending', 'unknown', 'accepted'))
$fn$;

-- an operation that was approved beforehand holds its share of that approval, which is reserved after the operation is
-- made: so this is looked at when the transaction ends
CREATE FUNCTION reconciliation_holds_standing() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF EXISTS (SELECT FROM approvals_decision d WHERE d.id = NEW.decision_id AND d.kind = 'standing'
      AND NOT EXISTS (SELECT FROM reconciliation_reservation r WHERE r.operation_id = NEW.id
        AND (r.allowance_id || '/') LIKE 'standing/' || d.standing_id || '/%'
        AND r.amount_minor = NEW.amount_minor)) THEN
    RAISE EXCEPTION 'an operation under a standing approval uses it' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $fn$;
CREATE CONSTRAINT TRIGGER reconciliation_holds_standing AFTER INSERT ON reconciliation_operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconciliation_holds_standing();

-- What is settled is put right by a new entry, and changes by nothing else. A reversal moves a settled operation on and
-- leaves what was recorded of it as it is.
CREATE FUNCTION reconciliation_only_by_entry() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NEW.corrected <> OLD.corrected + 1 OR NOT EXISTS (
    SELECT FROM reconciliation_correction c WHERE c.operation_id = NEW.id AND c.number = NEW.corrected
      AND c.source = OLD.state AND c.target = NEW.state
  ) THEN
    RAISE EXCEPTION 'what is settled is put right by a correction only' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_only_by_entry BEFORE UPDATE ON reconciliation_operation
  FOR EACH ROW WHEN (OLD.state IN ('succeeded', 'failed') AND NEW.state IN ('succeeded', 'failed') AND (
    (OLD.state, OLD.external_reference, OLD.actual, OLD.settled_by, OLD.failure, OLD.failure_code, OLD.settled_at,
     OLD.corrected)
    IS DISTINCT FROM
    (NEW.state, NEW.external_reference, NEW.actual, NEW.settled_by, NEW.failure, NEW.failure_code, NEW.settled_at,
     NEW.corrected)))
  EXECUTE FUNCTION reconciliation_only_by_entry();
