-- A row begins in its machine's first state and takes the edges in runs_stateedge only. Each machine has a trigger of
-- its own with two arguments: the machine's name, and the state it begins in (runs/db.py).
CREATE FUNCTION agentops_guard_edge() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> TG_ARGV[1] THEN
      RAISE EXCEPTION '% cannot begin as %', TG_ARGV[0], NEW.state USING ERRCODE = 'restrict_violation';
    END IF;
  ELSIF NEW.state <> OLD.state AND NOT EXISTS (SELECT FROM runs_stateedge e WHERE e.machine = TG_ARGV[0]
      AND e.source = OLD.state AND e.target = NEW.state) THEN
    RAISE EXCEPTION '% cannot go from % to %', TG_ARGV[0], OLD.state, NEW.state USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;

-- a finished run is closed for good: nothing about it changes but its record's numbering
CREATE FUNCTION runs_finished_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF OLD.finished_at IS NOT NULL AND (NEW.finished_at IS DISTINCT FROM OLD.finished_at
      OR NEW.state <> OLD.state OR NEW.wake_at IS NOT NULL OR NEW.lease_until IS NOT NULL) THEN
    RAISE EXCEPTION 'a finished run stays finished' USING ERRCODE = 'restrict_violation';
  END IF;
  IF NEW.lease_token < OLD.lease_token OR NEW.event_seq < OLD.event_seq THEN
    RAISE EXCEPTION 'tokens and numbers only grow' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER runs_finished_stays BEFORE UPDATE ON runs_run
  FOR EACH ROW EXECUTE FUNCTION runs_finished_stays();

-- what came of a wait stays, and the run that was started for it is the one for good
CREATE FUNCTION runs_wait_stays() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  IF OLD.result NOT IN ('', 'dropped') OR NEW.other_id IS DISTINCT FROM OLD.other_id
      AND OLD.other_id IS NOT NULL THEN
    RAISE EXCEPTION 'a wait that has ended, and the run it is for, stay as they are'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $fn$;
CREATE TRIGGER runs_wait_stays BEFORE UPDATE ON runs_wait
  FOR EACH ROW EXECUTE FUNCTION runs_wait_stays();
