-- a reversal undoes what stands, was proposed, and is no reversal itself
CREATE FUNCTION reconciliation_reverses_what_stands() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM reconciliation_operation o JOIN reconciliation_reversal r
      ON r.operation_id = o.id WHERE o.id = NEW.reverses_id AND o.state = 'succeeded'
      AND o.reverses_id IS NULL AND r.run_id = NEW.run_id AND r.ended_at IS NULL
      AND r.reference = NEW.reverses_reference) THEN
    RAISE EXCEPTION 'no reversal of this was proposed, or it does not stand'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_reverses_what_stands BEFORE INSERT ON reconciliation_operation
  FOR EACH ROW WHEN (NEW.reverses_id IS NOT NULL) EXECUTE FUNCTION reconciliation_reverses_what_stands();

-- compensated says that a reversal of this very record succeeded, and nothing else can
CREATE FUNCTION reconciliation_compensated_by() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM reconciliation_operation r WHERE r.reverses_id = NEW.id
      AND r.reverses_reference = NEW.external_reference AND r.state = 'succeeded') THEN
    RAISE EXCEPTION 'no reversal of this has succeeded' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_compensated_by BEFORE UPDATE OF state ON reconciliation_operation
  FOR EACH ROW WHEN (NEW.state = 'compensated' AND OLD.state <> 'compensated')
  EXECUTE FUNCTION reconciliation_compensated_by();

-- whichever code settles a reversal or ends its run, somebody looks what follows from it
CREATE FUNCTION reconciliation_reversal_due() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  UPDATE reconciliation_reversal SET due_at = clock_timestamp() WHERE ended_at IS NULL AND run_id =
    CASE TG_TABLE_NAME WHEN 'runs_run' THEN (to_jsonb(NEW) ->> 'id')::uuid
      ELSE (to_jsonb(NEW) ->> 'run_id')::uuid END;
  RETURN NULL;
END $fn$;
CREATE TRIGGER reconciliation_reversal_settled AFTER UPDATE OF state ON reconciliation_operation
  FOR EACH ROW WHEN (NEW.reverses_id IS NOT NULL AND NEW.state IN ('succeeded', 'failed')
    AND OLD.state <> NEW.state)
  EXECUTE FUNCTION reconciliation_reversal_due();
CREATE TRIGGER reconciliation_reversal_over AFTER UPDATE OF state ON runs_run
  FOR EACH ROW WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL AND NEW.workflow = 'reversal')
  EXECUTE FUNCTION reconciliation_reversal_due();
