-- What our record calls failed, and the other side shows, holds its business key until a person has judged it; so does
-- what was undone and given up, once it is in doubt again. Only these two triggers change `key_held`. Where a successor
-- has the key by then it keeps it, and the case says so.
CREATE FUNCTION reconciliation_hold_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
AS $fn$
BEGIN
  BEGIN
    UPDATE reconciliation_operation SET key_held = true
      WHERE id = NEW.operation_id AND NOT key_held AND (state IN ('failed', 'abandoned') OR anew_allowed);
  EXCEPTION WHEN unique_violation THEN NULL;
  END;
  RETURN NULL;
END $fn$;
CREATE TRIGGER reconciliation_hold_key AFTER INSERT ON reconciliation_case
  FOR EACH ROW EXECUTE FUNCTION reconciliation_hold_key();

CREATE FUNCTION reconciliation_free_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
AS $fn$
BEGIN
  UPDATE reconciliation_operation o SET key_held = false
    WHERE o.id = NEW.operation_id AND o.key_held
      AND NOT EXISTS (SELECT FROM reconciliation_case c WHERE c.operation_id = o.id AND c.state <> 'resolved');
  RETURN NULL;
END $fn$;
CREATE TRIGGER reconciliation_free_key AFTER UPDATE OF state ON reconciliation_case
  FOR EACH ROW WHEN (NEW.state = 'resolved') EXECUTE FUNCTION reconciliation_free_key();

-- what was undone keeps its business key until a person allows that the same is done anew
CREATE FUNCTION reconciliation_anew() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF OLD.anew_allowed OR NEW.state <> 'compensated' OR OLD.state <> 'compensated' THEN
    RAISE EXCEPTION 'only what was undone is done anew, and that is allowed once'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_anew BEFORE UPDATE OF anew_allowed ON reconciliation_operation
  FOR EACH ROW WHEN (NEW.anew_allowed IS DISTINCT FROM OLD.anew_allowed) EXECUTE FUNCTION reconciliation_anew();
