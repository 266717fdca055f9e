-- What lists are searched and ordered by is on the request itself, so that an index can find it. What a request is about
-- never changes, so it is copied once, by whichever code writes the request.
CREATE FUNCTION approvals_request_about() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  SELECT p.amount_minor, coalesce(p.currency, '') INTO NEW.amount_minor, NEW.currency
    FROM runs_proposal p WHERE p.id = NEW.proposal_id;
  SELECT concat_ws(E'\n', r.customer, r.subject, NEW.ask) INTO NEW.words FROM runs_run r WHERE r.id = NEW.run_id;
  RETURN NEW;
END $fn$;
CREATE TRIGGER approvals_request_about BEFORE INSERT ON approvals_approvalrequest
  FOR EACH ROW EXECUTE FUNCTION approvals_request_about();

-- the record itself fills the outbox: in the same transaction as the line, whichever code wrote it
CREATE FUNCTION approvals_announce() RETURNS trigger LANGUAGE plpgsql AS $fn$
BEGIN
  INSERT INTO approvals_announcement (event_id) VALUES (NEW.id);
  RETURN NULL;
END $fn$;
CREATE TRIGGER approvals_announce AFTER INSERT ON runs_event
  FOR EACH ROW WHEN (NEW.kind LIKE 'request.%') EXECUTE FUNCTION approvals_announce();
