-- only a list that was read to its end says that something is missing
CREATE FUNCTION reconciliation_missing_from_whole() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF NOT EXISTS (SELECT FROM reconciliation_statement s WHERE s.number = NEW.statement_id AND s.read_at IS NOT NULL) THEN
    RAISE EXCEPTION 'only a statement that was read to its end says that something is missing'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER reconciliation_missing_from_whole BEFORE INSERT ON reconciliation_statementours
  FOR EACH ROW WHEN (NEW.result = 'missing') EXECUTE FUNCTION reconciliation_missing_from_whole();
